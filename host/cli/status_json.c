#include "cli/status_json.h"

#include "base/json.h"
#include "base/json_member.h"

#include <inttypes.h>

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
    json_member_string(out, &first, "name", topic->name);
    json_member_int64(out, &first, "mark", topic->mark);
    json_member_int64(out, &first, "end", topic->end);
    json_member_int64(out, &first, "start", topic->start);
    if (topic->blocked != NULL)
        json_member_string(out, &first, "held", topic->blocked);
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
    json_member_int64(out, &first, "position", failure->position);
    json_member_string(out, &first, "key", failure->key);
    json_member_string(out, &first, "status", failure->status);
    json_member_int64(out, &first, "attempts", failure->count);
    json_member_string(out, &first, "reason", failure->reason);
    json_member_time(out, &first, "recorded_at", failure->recorded_at);
    buffer_append_char(out, '}');
}

static void write_failed(struct buffer *out,
                         const struct status_consumer *consumer)
{
    for (size_t i = 0; i < consumer->nfailed; i++) {
        const struct status_failure *failed = &consumer->failed[i];
        bool first = true;

        buffer_append_string(out, i > 0 ? ",{" : "{");
        json_member_int64(out, &first, "position", failed->position);
        json_member_string(out, &first, "key", failed->key);
        json_member_string(out, &first, "type", failed->type);
        json_member_string(out, &first, "status", failed->status);
        json_member_int64(out, &first, "attempts", failed->count);
        json_member_string(out, &first, "reason", failed->reason);
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
    json_member_bool(out, first, "rebuild_due",
                     change->verdict == FINGERPRINT_REBUILD_DUE);
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
        json_member_time(out, &members, "recorded_at", u->oldest_at);
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
    json_member_int64(out, &inner, "position", consumer->position);
    json_member_int64(out, &inner, "through", consumer->replay_through);
    json_member_int64(out, &inner, "percent", status_replay_percent(consumer));
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
        json_member_string(out, &inner, "instance", owner->instance);
        json_member_string(out, &inner, "host", owner->host);
        json_member_bool(out, &inner, "live", owner->live);
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
    json_member_string(out, &first, "type", consumer->type);
    json_member_string(out, &first, "name", consumer->name);
    json_member_string(out, &first, "source", consumer->source);
    json_member_string(out, &first, "state", consumer->state);
    if (consumer->halt_reason[0] != '\0')
        json_member_string(out, &first, "halt_reason", consumer->halt_reason);
    if (consumer->registered)
        json_member_time(out, &first, "state_since", consumer->state_since);
    json_member_bool(out, &first, "declared", consumer->declared);
    write_change(out, &first, &consumer->change);
    write_owners(out, &first, consumer);
    json_member_int64(out, &first, "epoch", consumer->epoch);
    json_member_int64(out, &first, "position", consumer->position);
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
        json_member_int64(out, &inner, consumer->undelivered[i].status,
                          consumer->undelivered[i].count);
    buffer_append_char(out, '}');
    write_oldest(out, &first, report, consumer);
    json_member_time_or_null(out, &first, "next_retry_at",
                             next_retry(report, consumer));
    json_member_int64(out, &first, "blocked_partitions",
                      consumer->blocked_partitions);
    json_member_int64_if(out, &first, "incomplete_through",
                         consumer->incomplete_through > 0,
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
    json_member_string(out, &first, "host", script->host);
    /* One that was refused from the start runs no version. */
    json_member_string(out, &first, "version",
                       script->version != NULL ? script->version : "");
    json_member_time(out, &first, "since", script->since);
    json_member_string(out, &first, "changes",
                       script->changes != NULL ? script->changes : "");
    json_member_time_or_null(out, &first, "refused_at", script->refused_at);
    json_member_string(out, &first, "error", script->error);
    buffer_append_char(out, '}');
}

static void write_pending(struct buffer *out,
                          const struct status_report *report,
                          const struct outbox_pending *pending)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "publisher", pending->route);
    json_member_int64(out, &first, "pending", pending->count);
    json_member_time(out, &first, "oldest_at", pending->oldest_at);
    write_amount(out, &first, "seconds",
                 seconds_since(report, pending->oldest_at));
    buffer_append_char(out, '}');
}

static void write_deadline_failure(struct buffer *out, bool *first,
                                   const struct status_deadlines *d)
{
    const struct status_deadline_failure *failure = d->last_dead.saga != NULL
                                                        ? &d->last_dead
                                                        : &d->last_failed;
    bool within = true;

    json_write_key(out, first, "last_error");
    if (failure->saga == NULL) {
        buffer_append_string(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    json_member_string(out, &within, "saga_id", failure->saga);
    json_member_string(out, &within, "name", failure->name);
    json_member_string(out, &within, "status", failure->status);
    json_member_int64(out, &within, "attempts", failure->attempts);
    json_member_time_or_null(out, &within, "next_retry_at", failure->next_at);
    json_member_string(out, &within, "reason", failure->reason);
    buffer_append_char(out, '}');
}

static void write_deadlines(struct buffer *out,
                            const struct status_deadlines *d)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "saga_type", d->type);
    json_member_int64(out, &first, "deadlines", d->count);
    json_member_int64(out, &first, "failed", d->failed);
    json_member_int64(out, &first, "dead_letters", d->dead);
    json_member_int64(out, &first, "overdue", d->overdue);
    json_member_time_or_null(out, &first, "overdue_since", d->overdue_at);
    json_member_time_or_null(out, &first, "next_at", d->next_at);
    write_deadline_failure(out, &first, d);
    buffer_append_char(out, '}');
}

static void write_compaction(struct buffer *out,
                             const struct status_report *report,
                             const struct status_compaction *compaction)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "topic", compaction->topic);
    json_member_int64_if(out, &first, "through", compaction->through >= 0,
                         compaction->through);
    json_member_int64(out, &first, "mark", compaction->mark);
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
    json_member_string(out, &first, "type", compaction->holder_type);
    json_member_string(out, &first, "name", compaction->holder);
    json_member_int64(out, &first, "position", compaction->holder_position);
    buffer_append_string(out, "}}");
}

static void write_saga(struct buffer *out, const struct status_saga *saga)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "saga_type", saga->type);
    json_member_string(out, &first, "state", saga->state);
    json_member_int64(out, &first, "steps", saga->count);
    json_member_string(out, &first, "example", saga->example);
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
