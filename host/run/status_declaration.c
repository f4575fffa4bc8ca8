#include "run/status_declaration.h"

#include "consumer/registry.h"

static void what_to_do(const struct status_consumer *consumer,
                       struct buffer *sentence)
{
    if (consumer->rebuildable)
        buffer_printf(sentence, "`moontide rebuild %s` derives them anew",
                      consumer->name);
    else
        buffer_append_string(sentence,
                             "to derive them anew give it a reset function");
    buffer_printf(sentence,
                  ", `moontide resume %s --accept` keeps them and goes on",
                  consumer->name);
}

/* CREATE TABLE IF NOT EXISTS says nothing about a table that it left alone. */
void status_declaration_tables(const struct fingerprint_change *change,
                               const char *tables, const char *name,
                               struct buffer *sentence)
{
    if (change->part[FINGERPRINT_SHAPE] && tables != NULL)
        buffer_printf(sentence,
                      "; %s makes what is missing and leaves a table that is "
                      "there as it is: drop or alter one that is to change "
                      "before `moontide rebuild %s`",
                      tables, name);
}

static void what_changed(const struct status_consumer *consumer,
                         struct buffer *sentence)
{
    fingerprint_describe(&consumer->change, sentence);
    buffer_append_string(sentence,
                         " changed since its read models were derived");
    if (consumer->change.reverted)
        buffer_append_string(sentence,
                             " (to what was declared before the last rebuild)");
}

void status_declaration_halted(const struct status_consumer *consumer,
                               struct buffer *sentence)
{
    if (consumer->declared && consumer->registered &&
        consumer->change.verdict != FINGERPRINT_CHANGED) {
        buffer_printf(sentence,
                      "; it is declared as before again: start the host anew, "
                      "or `moontide resume %s --accept`, and it goes on",
                      consumer->name);
        return;
    }
    if (consumer->declared) {
        buffer_append_string(sentence, ": ");
        what_changed(consumer, sentence);
    }
    buffer_append_string(sentence, "; ");
    what_to_do(consumer, sentence);
    buffer_append_string(sentence,
                         ", and declared as before it goes on with the next "
                         "start of the host");
    status_declaration_tables(&consumer->change, consumer->tables,
                              consumer->name, sentence);
}

/* A start compares it: it runs, or what halted it is tried again. */
static bool start_compares(const struct status_consumer *consumer)
{
    return consumer->declared && consumer->registered &&
           (strcmp(consumer->state, consumer_state_word(CONSUMER_RUNNING)) ==
                0 ||
            strcmp(consumer->halt_reason, halt_reason_word(HALT_APPLY_ERROR)) ==
                0);
}

bool status_declaration_will_halt(const struct status_consumer *consumer)
{
    return start_compares(consumer) && !consumer->rebuild_on_change &&
           consumer->change.verdict == FINGERPRINT_CHANGED;
}

void status_declaration_warn(const struct status_consumer *consumer,
                             struct buffer *sentence)
{
    buffer_printf(sentence,
                  "%s '%s' will be halted by the next start of the "
                  "host: ",
                  consumer->type, consumer->name);
    what_changed(consumer, sentence);
    /* before that there is nothing to accept */
    buffer_append_string(sentence, "; once it is halted, ");
    what_to_do(consumer, sentence);
    status_declaration_tables(&consumer->change, consumer->tables,
                              consumer->name, sentence);
}

void status_declaration_note(const struct status_consumer *consumer,
                             struct buffer *sentence)
{
    enum fingerprint_verdict verdict = consumer->change.verdict;
    bool older = verdict == FINGERPRINT_OLDER_CODE;
    bool due = verdict == FINGERPRINT_REBUILD_DUE;

    if (consumer->rebuild_on_change && start_compares(consumer) &&
        (due || verdict == FINGERPRINT_CHANGED)) {
        buffer_printf(sentence,
                      "%s '%s' will be rebuilt by the next start of "
                      "the host, as on_change says: ",
                      consumer->type, consumer->name);
        what_changed(consumer, sentence);
        status_declaration_tables(&consumer->change, consumer->tables,
                                  consumer->name, sentence);
    } else if (older) {
        buffer_printf(sentence,
                      "%s '%s' holds history that was derived by older code",
                      consumer->type, consumer->name);
        if (consumer->rebuildable)
            buffer_printf(sentence, "; `moontide rebuild %s` derives it anew",
                          consumer->name);
    } else if (due) {
        buffer_printf(sentence,
                      "%s '%s' asks for a rebuild, its revision was raised: "
                      "until `moontide rebuild %s` it holds history that was "
                      "derived by older code",
                      consumer->type, consumer->name, consumer->name);
    }
}
