#include "cli/status_json.h"

#include "base/json.h"

#include <inttypes.h>

static void write_string(struct buffer *out, bool *first, const char *key,
                         const char *value)
{
    json_write_key(out, first, key);
    json_write_string(out, text_of(value));
}

static void write_integer(struct buffer *out, bool *first, const char *key,
                          int64_t value)
{
    json_write_key(out, first, key);
    buffer_printf(out, "%" PRId64, value);
}

static void write_time(struct buffer *out, bool *first, const char *key,
                       int64_t time_us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    write_string(out, first, key, text);
}

static void write_time_or_null(struct buffer *out, bool *first, const char *key,
                               int64_t time_us)
{
    if (time_us != 0) {
        write_time(out, first, key, time_us);
        return;
    }
    json_write_key(out, first, key);
    buffer_append_string(out, "null");
}

static void write_position_or_null(struct buffer *out, bool *first,
                                   const char *key, int64_t position)
{
    json_write_key(out, first, key);
    if (position > 0)
        buffer_printf(out, "%" PRId64, position);
    else
        buffer_append_string(out, "null");
}

/* Below 0 it is not known. */
static void write_amount(struct buffer *out, bool *first, const char *key,
                         double amount)
{
    json_write_key(out, first, key);
    if (amount < 0)
        buffer_append_string(out, "null");
    else
        buffer_printf(out, "%.3f", amount);
}

static double seconds_since(const struct status_report *report, int64_t time_us)
{
    return time_us < report->now_us
               ? (double)(report->now_us - time_us) / (double)CLOCK_SECOND
               : 0;
}

/* When the next message is tried again, by a consumer that runs; 0: none. */
static int64_t next_retry(const struct status_report *report,
                          const struct status_consumer *consumer)
{
    if (consumer->retry_at_once)
        return report->now_us;
    return consumer->next_retry_at;
}

static void write_topic(struct buffer *out, const struct status_topic *topic)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "name", topic->name);
    write_integer(out, &first, "mark", topic->mark);
    write_integer(out, &first, "end", topic->end);
    write_integer(out, &first, "start", topic->start);
    if (topic->blocked != NULL)
        write_string(out, &first, "held", topic->blocked);
    buffer_append_char(out, '}');
}

static void write_failure(struct buffer *out,
                          const struct status_failure *failure)
{
    bool first = true;

    if (failure->position == 0) {
        buffer_append_string(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    write_integer(out, &first, "position", failure->position);
    write_string(out, &first, "key", failure->key);
    write_string(out, &first, "status", failure->status);
    write_integer(out, &first, "attempts", failure->count);
    write_string(out, &first, "reason", failure->reason);
    write_time(out, &first, "recorded_at", failure->recorded_at);
    buffer_append_char(out, '}');
}

static void write_failed(struct buffer *out,
                         const struct status_consumer *consumer)
{
    for (size_t i = 0; i < consumer->nfailed; i++) {
        const struct status_failure *failed = &consumer->failed[i];
        bool first = true;

        buffer_append_string(out, i > 0 ? ",{" : "{");
        write_integer(out, &first, "position", failed->position);
        write_string(out, &first, "key", failed->key);
        write_string(out, &first, "type", failed->type);
        write_string(out, &first, "status", failed->status);
        write_integer(out, &first, "attempts", failed->count);
        write_string(out, &first, "reason", failed->reason);
        buffer_append_char(out, '}');
    }
}

/* Which parts of the declaration differ from what is stored. */
static void write_change(struct buffer *out, bool *first,
                         const struct fingerprint_change *change)
{
    bool any = false;

    json_write_key(out, first, "changed");
    buffer_append_char(out, '[');
    for (int p = 0; p < FINGERPRINT_PARTS; p++) {
        if (!change->part[p])
            continue;
        buffer_printf(out, "%s\"%s\"", any ? "," : "",
                      fingerprint_part_word(p));
        any = true;
    }
    buffer_append_char(out, ']');
    json_write_key(out, first, "rebuild_due");
    buffer_append_string(
        out, change->verdict == FINGERPRINT_REBUILD_DUE ? "true" : "false");
}

/* When the oldest undelivered message by status was recorded, and its age. */
static void write_oldest(struct buffer *out, bool *first,
                         const struct status_report *report,
                         const struct status_consumer *consumer)
{
    bool inner = true;

    json_write_key(out, first, "oldest");
    buffer_append_char(out, '{');
    for (size_t i = 0; i < consumer->nundelivered; i++) {
        const struct status_undelivered *u = &consumer->undelivered[i];
        bool members = true;

        json_write_key(out, &inner, u->status);
        buffer_append_char(out, '{');
        write_time(out, &members, "recorded_at", u->oldest_at);
        write_amount(out, &members, "seconds",
                     seconds_since(report, u->oldest_at));
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, '}');
}

static void write_replay(struct buffer *out, bool *first,
                         const struct status_consumer *consumer)
{
    bool inner = true;

    json_write_key(out, first, "replay");
    if (consumer->replay_through == 0) {
        buffer_append_string(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    write_integer(out, &inner, "position", consumer->position);
    write_integer(out, &inner, "through", consumer->replay_through);
    write_integer(out, &inner, "percent", status_replay_percent(consumer));
    write_amount(out, &inner, "seconds_left",
                 consumer->left_us < 0
                     ? -1
                     : (double)consumer->left_us / (double)CLOCK_SECOND);
    buffer_append_char(out, '}');
}

/* Which instances hold its partitions. */
static void write_owners(struct buffer *out, bool *first,
                         const struct status_consumer *consumer)
{
    json_write_key(out, first, "owners");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < consumer->nowners; i++) {
        const struct status_owner *owner = &consumer->owners[i];
        bool inner = true;

        buffer_append_string(out, i > 0 ? ",{" : "{");
        write_string(out, &inner, "instance", owner->instance);
        write_string(out, &inner, "host", owner->host);
        json_write_key(out, &inner, "live");
        buffer_append_string(out, owner->live ? "true" : "false");
        json_write_key(out, &inner, "partitions");
        for (size_t p = 0; p < owner->npartitions; p++)
            buffer_printf(out, "%s%" PRId64, p > 0 ? "," : "[",
                          owner->partitions[p]);
        buffer_append_string(out, "]}");
    }
    buffer_append_char(out, ']');
}

static void write_consumer(struct buffer *out,
                           const struct status_report *report,
                           const struct status_consumer *consumer, bool alone)
{
    bool first = true;
    bool inner = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "type", consumer->type);
    write_string(out, &first, "name", consumer->name);
    write_string(out, &first, "source", consumer->source);
    write_string(out, &first, "state", consumer->state);
    if (consumer->halt_reason[0] != '\0')
        write_string(out, &first, "halt_reason", consumer->halt_reason);
    if (consumer->registered)
        write_time(out, &first, "state_since", consumer->state_since);
    json_write_key(out, &first, "declared");
    buffer_append_string(out, consumer->declared ? "true" : "false");
    write_change(out, &first, &consumer->change);
    write_owners(out, &first, consumer);
    write_integer(out, &first, "epoch", consumer->epoch);
    write_integer(out, &first, "position", consumer->position);
    json_write_key(out, &first, "lag");
    if (consumer->lag == STATUS_UNKNOWN)
        buffer_append_string(out, "null");
    else
        buffer_printf(out, "{\"messages\":%" PRId64 ",\"seconds\":%.3f}",
                      consumer->lag,
                      (double)consumer->lag_us / (double)CLOCK_SECOND);
    write_amount(out, &first, "rate", consumer->rate);
    write_replay(out, &first, consumer);
    json_write_key(out, &first, "undelivered");
    buffer_append_char(out, '{');
    for (size_t i = 0; i < consumer->nundelivered; i++)
        write_integer(out, &inner, consumer->undelivered[i].status,
                      consumer->undelivered[i].count);
    buffer_append_char(out, '}');
    write_oldest(out, &first, report, consumer);
    write_time_or_null(out, &first, "next_retry_at",
                       next_retry(report, consumer));
    write_integer(out, &first, "blocked_partitions",
                  consumer->blocked_partitions);
    write_position_or_null(out, &first, "incomplete_through",
                           consumer->incomplete_through);
    json_write_key(out, &first, "last_error");
    write_failure(out, &consumer->failure);
    if (alone) {
        json_write_key(out, &first, "failed");
        buffer_append_char(out, '[');
        write_failed(out, consumer);
        buffer_append_char(out, ']');
    }
    buffer_append_char(out, '}');
}

static void write_sentences(struct buffer *out, const char *const *sentences,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_write_string(out, text_of(sentences[i]));
    }
}

static void write_script(struct buffer *out, const struct status_script *script)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "host", script->host);
    write_string(out, &first, "version", script->version);
    write_time(out, &first, "since", script->since);
    write_string(out, &first, "changes", script->changes);
    write_time_or_null(out, &first, "refused_at", script->refused_at);
    json_write_key(out, &first, "error");
    if (script->error != NULL)
        json_write_string(out, text_of(script->error));
    else
        buffer_append_string(out, "null");
    buffer_append_char(out, '}');
}

static void write_pending(struct buffer *out,
                          const struct status_report *report,
                          const struct outbox_pending *pending)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "publisher", pending->route);
    write_integer(out, &first, "pending", pending->count);
    write_time(out, &first, "oldest_at", pending->oldest_at);
    write_amount(out, &first, "seconds",
                 seconds_since(report, pending->oldest_at));
    buffer_append_char(out, '}');
}

static void write_deadlines(struct buffer *out,
                            const struct status_deadlines *d)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "saga_type", d->type);
    write_integer(out, &first, "deadlines", d->count);
    write_integer(out, &first, "failed", d->failed);
    write_integer(out, &first, "dead_letters", d->dead);
    write_integer(out, &first, "overdue", d->overdue);
    write_time_or_null(out, &first, "overdue_since", d->overdue_at);
    write_time_or_null(out, &first, "next_at", d->next_at);
    buffer_append_char(out, '}');
}

static void write_compaction(struct buffer *out,
                             const struct status_report *report,
                             const struct status_compaction *compaction)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "topic", compaction->topic);
    json_write_key(out, &first, "through");
    if (compaction->through < 0)
        buffer_append_string(out, "null");
    else
        buffer_printf(out, "%" PRId64, compaction->through);
    write_integer(out, &first, "mark", compaction->mark);
    write_amount(out, &first, "behind_seconds",
                 compaction->waiting_since == 0
                     ? 0
                     : seconds_since(report, compaction->waiting_since));
    json_write_key(out, &first, "held_by");
    if (compaction->holder == NULL) {
        buffer_append_string(out, "null}");
        return;
    }
    first = true;
    buffer_append_char(out, '{');
    write_string(out, &first, "type", compaction->holder_type);
    write_string(out, &first, "name", compaction->holder);
    write_integer(out, &first, "position", compaction->holder_position);
    buffer_append_string(out, "}}");
}

static void write_saga(struct buffer *out, const struct status_saga *saga)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_string(out, &first, "saga_type", saga->type);
    write_string(out, &first, "state", saga->state);
    write_integer(out, &first, "steps", saga->count);
    write_string(out, &first, "example", saga->example);
    buffer_append_char(out, '}');
}

void status_json_write(const struct status_report *report, bool alone,
                       struct buffer *out)
{
    buffer_append_string(out, "{\"topics\":[");
    for (size_t i = 0; i < report->ntopics; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_topic(out, &report->topics[i]);
    }
    buffer_append_string(out, "],\"consumers\":[");
    for (size_t i = 0; i < report->nconsumers; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_consumer(out, report, &report->consumers[i], alone);
    }
    buffer_append_string(out, "],\"deadlines\":[");
    for (size_t i = 0; i < report->ndeadlines; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_deadlines(out, &report->deadlines[i]);
    }
    buffer_append_string(out, "],\"outbox\":[");
    for (size_t i = 0; i < report->npending; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_pending(out, report, &report->pending[i]);
    }
    buffer_append_string(out, "],\"compaction\":[");
    for (size_t i = 0; i < report->ncompactions; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_compaction(out, report, &report->compactions[i]);
    }
    buffer_append_string(out, "],\"sagas\":[");
    for (size_t i = 0; i < report->nsagas; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_saga(out, &report->sagas[i]);
    }
    buffer_append_string(out, "],\"scripts\":[");
    for (size_t i = 0; i < report->nscripts; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_script(out, &report->scripts[i]);
    }
    buffer_append_string(out, "],\"problems\":[");
    write_sentences(out, report->problems, report->nproblems);
    buffer_append_string(out, "],\"notes\":[");
    write_sentences(out, report->notes, report->nnotes);
    buffer_append_string(out, "]}\n");
}
