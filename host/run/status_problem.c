#include "run/status_problem.h"

#include "consumer/registry.h"
#include "run/status_declaration.h"

#include <inttypes.h>

static void add_sentence(struct arena *arena, const char ***list, size_t *count,
                         struct buffer *sentence)
{
    const char **bigger = arena_alloc(arena, (*count + 1) * sizeof(*bigger));

    if (*count > 0)
        memcpy(bigger, *list, *count * sizeof(*bigger));
    *list = bigger;
    (*list)[(*count)++] = arena_string(arena, buffer_text(sentence));
    buffer_clear(sentence);
}

static void add_problem(struct status_report *report, struct buffer *sentence)
{
    add_sentence(&report->arena, &report->problems, &report->nproblems,
                 sentence);
}

static bool is_halted_with(const struct status_consumer *consumer,
                           enum halt_reason reason)
{
    return strcmp(consumer->halt_reason, halt_reason_word(reason)) == 0;
}

/* What an operator can do about it. */
static void halted_remedy(const struct status_consumer *consumer,
                          struct buffer *sentence)
{
    if (is_halted_with(consumer, HALT_APPLY_ERROR))
        buffer_printf(sentence,
                      "; correct the handler or the data, then `moontide "
                      "resume %s` or the next start tries it again; with "
                      "--past it is skipped",
                      consumer->name);
    else if (is_halted_with(consumer, HALT_MISSING_HISTORY))
        buffer_printf(sentence,
                      ": its topic no longer holds messages that it has not "
                      "read; `moontide resume %s --accept` goes on without "
                      "them",
                      consumer->name);
    else if (is_halted_with(consumer, HALT_DECLARATION_CHANGED))
        status_declaration_halted(consumer, sentence);
}

static void halted_problem(const struct status_consumer *consumer,
                           struct buffer *sentence)
{
    char since[CLOCK_TEXT_SIZE];

    clock_format(consumer->state_since, since);
    buffer_printf(sentence, "%s '%s' is halted since %s (%s)", consumer->type,
                  consumer->name, since, consumer->halt_reason);
    if (consumer->failure.position > 0) {
        buffer_printf(sentence, " by the message at position %" PRId64,
                      consumer->failure.position);
        if (consumer->failure.key[0] != '\0')
            buffer_printf(sentence, ", key '%s'", consumer->failure.key);
        buffer_printf(sentence, ": %s", consumer->failure.reason);
    }
    halted_remedy(consumer, sentence);
}

/* Dead letters wait for an operator, all others for themselves. */
static bool any_dead(const struct status_consumer *consumer)
{
    for (size_t i = 0; i < consumer->nundelivered; i++)
        if (strncmp(consumer->undelivered[i].status, "DEAD", 4) == 0)
            return true;
    return false;
}

static void undelivered_problem(const struct status_consumer *consumer,
                                struct buffer *sentence)
{
    buffer_printf(sentence, "%s '%s' has undelivered messages:", consumer->type,
                  consumer->name);
    for (size_t i = 0; i < consumer->nundelivered; i++)
        buffer_printf(sentence, "%s %" PRId64 " %s", i > 0 ? "," : "",
                      consumer->undelivered[i].count,
                      consumer->undelivered[i].status);
    if (consumer->failure.position > 0)
        buffer_printf(sentence, "; the last failed at position %" PRId64 ": %s",
                      consumer->failure.position, consumer->failure.reason);
    if (any_dead(consumer))
        buffer_printf(sentence,
                      "; `moontide dead-letters --consumer %s` lists them, "
                      "with retry they are tried again, with delete they are "
                      "skipped",
                      consumer->name);
}

static void paused_problem(const struct status_consumer *consumer,
                           struct buffer *sentence)
{
    char since[CLOCK_TEXT_SIZE];

    clock_format(consumer->state_since, since);
    buffer_printf(sentence,
                  "%s '%s' is paused since %s; `moontide resume %s` lets it go "
                  "on",
                  consumer->type, consumer->name, since, consumer->name);
}

/* What may be wrong with a consumer, the worst first. */
enum {
    GRADE_HALTED,
    GRADE_UNDELIVERED,
    GRADE_WILL_HALT,
    GRADE_PAUSED,
    GRADE_UNDECLARED,
    GRADES
};

static int consumer_grade(const struct status_consumer *consumer,
                          const struct status_request *request)
{
    if (strcmp(consumer->state, consumer_state_word(CONSUMER_HALTED)) == 0)
        return GRADE_HALTED;
    if (consumer->nundelivered > 0)
        return GRADE_UNDELIVERED;
    if (status_declaration_will_halt(consumer))
        return GRADE_WILL_HALT;
    if (strcmp(consumer->state, consumer_state_word(CONSUMER_PAUSED)) == 0)
        return GRADE_PAUSED;
    if (!consumer->declared && request->script_error == NULL)
        return GRADE_UNDECLARED;
    return GRADES;
}

static void consumer_problem(const struct status_consumer *consumer, int grade,
                             struct buffer *sentence)
{
    if (grade == GRADE_HALTED)
        halted_problem(consumer, sentence);
    else if (grade == GRADE_UNDELIVERED)
        undelivered_problem(consumer, sentence);
    else if (grade == GRADE_WILL_HALT)
        status_declaration_warn(consumer, sentence);
    else if (grade == GRADE_PAUSED)
        paused_problem(consumer, sentence);
    else
        buffer_printf(sentence,
                      "%s '%s' is known to the database, but no script "
                      "declares it: nobody runs it",
                      consumer->type, consumer->name);
}

void status_problem_find(const struct status_request *request,
                         struct status_report *report)
{
    struct buffer sentence = BUFFER_EMPTY;

    if (request->script_error != NULL) {
        buffer_printf(&sentence, "the scripts cannot be loaded: %s",
                      request->script_error);
        add_problem(report, &sentence);
    }
    for (size_t i = 0; i < report->ntopics; i++) {
        const struct status_topic *topic = &report->topics[i];

        if (topic->end >= topic->mark)
            continue;
        buffer_printf(&sentence,
                      "topic '%s' ends at %" PRId64 ", below its high-water "
                      "mark %" PRId64 ": the database was restored from an "
                      "older copy; restore a newer one",
                      topic->name, topic->end, topic->mark);
        add_problem(report, &sentence);
    }
    for (size_t i = 0; i < report->ntopics; i++) {
        if (report->topics[i].blocked == NULL)
            continue;
        buffer_append_string(&sentence, report->topics[i].blocked);
        add_problem(report, &sentence);
    }
    for (int grade = 0; grade < GRADES; grade++) {
        for (size_t i = 0; i < report->nconsumers; i++) {
            if (consumer_grade(&report->consumers[i], request) != grade)
                continue;
            consumer_problem(&report->consumers[i], grade, &sentence);
            add_problem(report, &sentence);
        }
    }
    for (size_t i = 0; i < report->nconsumers; i++) {
        status_declaration_note(&report->consumers[i], &sentence);
        if (sentence.len > 0)
            add_sentence(&report->arena, &report->notes, &report->nnotes,
                         &sentence);
    }
    buffer_free(&sentence);
}
