#include "run/status_consumer.h"

#include "base/map.h"
#include "consumer/message_copy.h"
#include "consumer/registry.h"
#include "run/status_lag.h"
#include "topic/high_water_mark.h"

#include <inttypes.h>
#include <stdlib.h>

/* What is known of a consumer only while it is read. */
struct found {
    const char *source; /* of its checkpoints */
    int64_t *positions; /* by partition */
    size_t npositions;
    char newest[UUID_TEXT_LEN + 1]; /* id of its last failure's row, or "" */
    bool newest_halted;
};

struct lookup {
    struct status_reading *reading;
    struct arena *arena;
    struct map by_id;    /* id of a consumer -> place in the report */
    struct found *found; /* by place */
    struct map met;      /* messages whose keys are unknown */
    const char *only;    /* id of the consumer that was asked for, or NULL */
};

const struct status_topic *status_topic_find(const struct status_report *report,
                                             const char *name)
{
    for (size_t i = 0; i < report->ntopics; i++) {
        if (strcmp(report->topics[i].name, name) == 0)
            return &report->topics[i];
    }
    return NULL;
}

const struct declaration *
status_consumer_declaration(const struct status_request *request,
                            const struct status_consumer *consumer)
{
    for (size_t i = 0; i < request->ndeclarations; i++) {
        const struct declaration *declaration = &request->declarations[i];

        if (strcmp(declaration->name, consumer->name) == 0 &&
            strcmp(declaration_consumer_type(declaration), consumer->type) == 0)
            return declaration;
    }
    return NULL;
}

/* --- rows of consumers ---------------------------------------------------- */

static bool wanted(const struct status_reading *reading, const char *name)
{
    return reading->request->consumer == NULL ||
           strcmp(reading->request->consumer, name) == 0;
}

static struct status_consumer *add_consumer(struct status_reading *reading,
                                            const char *type, const char *name)
{
    struct status_report *report = reading->report;
    struct status_consumer *consumer;

    report->consumers = arena_grow(&report->arena, report->consumers,
                                   report->nconsumers,
                                   sizeof(*report->consumers));
    consumer = &report->consumers[report->nconsumers++];
    *consumer = (struct status_consumer){
        .type = type,
        .name = name,
        .source = "",
        .state = "NEW",
        .halt_reason = "",
        .lag = STATUS_UNKNOWN,
        .rate = (double)STATUS_UNKNOWN,
        .left_us = STATUS_UNKNOWN,
        .rebuildable = true,
    };
    return consumer;
}

static void compare(const struct status_reading *reading,
                    struct status_consumer *consumer, struct text stored)
{
    const struct declaration *declaration = status_consumer_declaration(
        reading->request, consumer);

    if (declaration == NULL)
        return;
    consumer->rebuild_on_change = declaration->rebuild_on_change;
    consumer->rebuildable = declaration->kind == DECLARATION_PROJECTION ||
                            declaration->resettable;
    if (declaration->tables_file != NULL)
        consumer->tables = arena_string(&reading->report->arena,
                                        text_of(declaration->tables_file));
    if (declaration_is_projection(declaration) && stored.data != NULL)
        consumer->change = fingerprint_compare(stored,
                                               &declaration->fingerprint);
}

static enum status take_consumer(void *arg, struct db_rows *row,
                                 struct diag *diag)
{
    struct lookup *lookup = arg;
    struct arena *arena = lookup->arena;
    const char *name = arena_string(arena, db_get_text(row, 2));
    struct status_consumer *consumer;
    const char *id;
    bool added;

    (void)diag;
    if (!wanted(lookup->reading, name))
        return STATUS_OK;
    id = arena_string(arena, db_get_text(row, 0));
    if (lookup->reading->request->consumer != NULL)
        lookup->only = id;
    (void)map_put(&lookup->by_id, text_of(id),
                  (int64_t)lookup->reading->report->nconsumers, &added);
    consumer = add_consumer(lookup->reading,
                            arena_string(arena, db_get_text(row, 1)), name);
    consumer->registered = true;
    consumer->state = "RUNNING";
    if (!db_is_null(row, 3))
        consumer->state = arena_string(arena, db_get_text(row, 3));
    if (!db_is_null(row, 4))
        consumer->halt_reason = arena_string(arena, db_get_text(row, 4));
    if (!db_is_null(row, 5))
        consumer->epoch = db_get_int64(row, 5);
    consumer->state_since = db_get_timestamp(row, 6);
    compare(lookup->reading, consumer,
            db_is_null(row, 7) ? TEXT_NONE : db_get_text(row, 7));
    return STATUS_OK;
}

static void add_new_consumers(struct status_reading *reading)
{
    const struct status_request *request = reading->request;
    size_t known = reading->report->nconsumers;

    for (size_t i = 0; i < request->ndeclarations; i++) {
        const char *name = request->declarations[i].name;
        bool found = false;

        for (size_t j = 0; j < known; j++)
            found = found ||
                    strcmp(reading->report->consumers[j].name, name) == 0;
        if (!found && wanted(reading, name))
            add_consumer(reading,
                         declaration_consumer_type(&request->declarations[i]),
                         name);
    }
}

/* The consumer whose id is in the column; NULL: none in the report. */
static struct status_consumer *consumer_of(const struct lookup *lookup,
                                           struct db_rows *row, size_t column,
                                           struct found **found)
{
    int64_t at = map_get(&lookup->by_id, db_get_text(row, column));

    if (at == MAP_ABSENT)
        return NULL;
    *found = &lookup->found[at];
    return &lookup->reading->report->consumers[at];
}

/* --- what is stored of them ----------------------------------------------- */

static enum status take_progress(void *arg, struct db_rows *row,
                                 struct diag *diag)
{
    struct lookup *lookup = arg;
    struct found *found;
    struct status_consumer *consumer = consumer_of(lookup, row, 0, &found);
    int64_t position = db_is_null(row, 3) ? 0 : db_get_int64(row, 3);

    (void)diag;
    if (consumer == NULL)
        return STATUS_OK;
    if (!db_is_null(row, 5) &&
        db_get_int64(row, 5) > consumer->incomplete_through)
        consumer->incomplete_through = db_get_int64(row, 5);
    if (found->source == NULL)
        found->source = arena_string(lookup->arena, db_get_text(row, 1));
    /* the rows of a source are numbered from 0 without a hole */
    if (!text_equal(text_of(found->source), db_get_text(row, 1)) ||
        db_get_int64(row, 2) != (int64_t)found->npositions)
        return STATUS_OK;
    if (!db_is_null(row, 4) && db_get_int64(row, 4) > consumer->replay_through)
        consumer->replay_through = db_get_int64(row, 4);
    found->positions = arena_grow(lookup->arena, found->positions,
                                  found->npositions, sizeof(*found->positions));
    found->positions[found->npositions++] = position;
    if (found->npositions == 1 || position < consumer->position)
        consumer->position = position;
    return STATUS_OK;
}

static struct status_undelivered *
undelivered_of(struct lookup *lookup, struct status_consumer *consumer,
               struct text status)
{
    struct status_undelivered *undelivered;

    for (size_t i = 0; i < consumer->nundelivered; i++)
        if (text_equal(text_of(consumer->undelivered[i].status), status))
            return &consumer->undelivered[i];
    consumer->undelivered = arena_grow(lookup->arena, consumer->undelivered,
                                       consumer->nundelivered,
                                       sizeof(*consumer->undelivered));
    undelivered = &consumer->undelivered[consumer->nundelivered++];
    *undelivered = (struct status_undelivered){
        .status = arena_string(lookup->arena, status),
        .oldest_at = INT64_MAX,
    };
    return undelivered;
}

/* Whether a message that lies in several partitions is met for the first time
 * in this status. */
static bool first_met(struct lookup *lookup, const struct status_consumer *of,
                      const char *status, int64_t position)
{
    char key[96];
    bool added;

    snprintf(key, sizeof(key), "%td:%.32s:%" PRId64,
             of - lookup->reading->report->consumers, status, position);
    (void)map_put(&lookup->met, text_of(key), 1, &added);
    return added;
}

static void take_newest(struct found *found, struct text id, bool halted)
{
    /* the halting message before the others */
    if (id.len != UUID_TEXT_LEN ||
        (found->newest[0] != '\0' &&
         (found->newest_halted != halted
              ? found->newest_halted
              : memcmp(id.data, found->newest, UUID_TEXT_LEN) <= 0)))
        return;
    memcpy(found->newest, id.data, UUID_TEXT_LEN);
    found->newest_halted = halted;
}

/* A message, or all of one status: either way they are added up. */
static enum status take_undelivered(void *arg, struct db_rows *row,
                                    struct diag *diag)
{
    struct lookup *lookup = arg;
    struct found *found;
    struct status_consumer *consumer = consumer_of(lookup, row, 0, &found);
    struct status_undelivered *u;
    int64_t lone = db_get_int64(row, 2), messages = db_get_int64(row, 3);
    int64_t failed = db_get_int64(row, 4), at;

    (void)diag;
    if (consumer == NULL)
        return STATUS_OK;
    u = undelivered_of(lookup, consumer, db_get_text(row, 1));
    if (strcmp(u->status, "FAILED") == 0 && db_get_int64(row, 7) < messages)
        consumer->retry_at_once = true;
    if (lone > 0) {
        consumer->unresolved = true;
        messages = first_met(lookup, consumer, u->status, lone);
        failed = failed > 0 ? messages : 0;
    }
    u->count += messages;
    u->failed += failed;
    at = db_get_timestamp(row, 5);
    if (at < u->oldest_at)
        u->oldest_at = at;
    at = db_is_null(row, 6) ? 0 : db_get_timestamp(row, 6);
    if (at != 0 &&
        (consumer->next_retry_at == 0 || at < consumer->next_retry_at))
        consumer->next_retry_at = at;
    if (!db_is_null(row, 8))
        take_newest(found, db_get_text(row, 8),
                    strcmp(u->status, "HALTED") == 0);
    return STATUS_OK;
}

static int by_status(const void *a, const void *b)
{
    const struct status_undelivered *one = a, *other = b;

    return strcmp(one->status, other->status);
}

static enum status take_blocked(void *arg, struct db_rows *row,
                                struct diag *diag)
{
    struct lookup *lookup = arg;
    struct found *found;
    struct status_consumer *consumer = consumer_of(lookup, row, 0, &found);

    (void)diag;
    if (consumer == NULL)
        return STATUS_OK;
    consumer->blocking = db_get_int64(row, 1);
    consumer->blocked_partitions = db_get_int64(row, 2);
    consumer->blocked_by = db_get_int64(row, 3);
    consumer->blocked_reason = db_is_null(row, 4)
                                   ? ""
                                   : arena_string(lookup->arena,
                                                  db_get_text(row, 4));
    return STATUS_OK;
}

/* What the rows of failures have in common. */
static struct status_failure failure_of(struct db_rows *row,
                                        struct arena *arena)
{
    return (struct status_failure){
        .position = db_get_int64(row, 0),
        .key = arena_string(arena, db_get_text(row, 1)),
        .type = "",
        .status = arena_string(arena, db_get_text(row, 2)),
        .count = db_get_int64(row, 3),
        .reason = arena_string(arena, db_get_text(row, 4)),
    };
}

static enum status take_last_failure(void *arg, struct db_rows *row,
                                     struct diag *diag)
{
    struct lookup *lookup = arg;
    struct found *found;
    struct status_consumer *consumer = consumer_of(lookup, row, 6, &found);

    (void)diag;
    if (consumer == NULL)
        return STATUS_OK;
    consumer->failure = failure_of(row, lookup->arena);
    consumer->failure.recorded_at = db_get_timestamp(row, 5);
    return STATUS_OK;
}

/* The type of the message that a row keeps a copy of. */
static const char *type_of_copy(struct text copy, struct arena *arena)
{
    struct arena scratch = ARENA_EMPTY;
    struct message message;
    const char *type = "";

    if (message_copy_read(copy, &scratch, &message, NULL) == STATUS_OK)
        type = arena_string(arena, message.type);
    arena_free(&scratch);
    return type;
}

/* Rows of the one consumer that was asked for. */
static enum status take_failed(void *arg, struct db_rows *row,
                               struct diag *diag)
{
    struct lookup *lookup = arg;
    struct status_consumer *consumer = lookup->reading->report->consumers;
    struct status_failure *failed;

    (void)diag;
    consumer->failed = arena_grow(lookup->arena, consumer->failed,
                                  consumer->nfailed, sizeof(*consumer->failed));
    failed = &consumer->failed[consumer->nfailed++];
    *failed = failure_of(row, lookup->arena);
    if (!db_is_null(row, 5))
        failed->type = type_of_copy(db_get_text(row, 5), lookup->arena);
    return STATUS_OK;
}

static enum status read_all(struct lookup *lookup, enum sql_statement sql,
                            const struct db_value *params, size_t nparams,
                            db_row_fn take, struct diag *diag)
{
    const struct application *app = lookup->reading->app;

    return db_rows_each(app->db, catalog_sql(app->catalog, sql), params,
                        nparams, take, lookup, diag);
}

static enum status read_last_failures(struct lookup *lookup, struct diag *diag)
{
    const struct status_report *report = lookup->reading->report;
    struct text *ids = arena_alloc(lookup->arena,
                                   (report->nconsumers + 1) * sizeof(*ids));
    struct db_value param;
    size_t count = 0;

    for (size_t i = 0; i < report->nconsumers; i++)
        if (lookup->found[i].newest[0] != '\0')
            ids[count++] = text_of(lookup->found[i].newest);
    if (count == 0)
        return STATUS_OK;
    param = db_texts(ids, count);
    return read_all(lookup, SQL_STATUS_LAST_FAILURES, &param, 1,
                    take_last_failure, diag);
}

static enum status read_stored(struct lookup *lookup, struct diag *diag)
{
    const struct status_report *report = lookup->reading->report;
    const struct db_value params[] = {db_string(lookup->only),
                                      db_integer(STATUS_FAILED_LIMIT)};
    bool unresolved = false;
    enum status status = read_all(lookup, SQL_STATUS_PROGRESS, params, 1,
                                  take_progress, diag);

    if (status == STATUS_OK)
        status = read_all(lookup, SQL_STATUS_UNDELIVERED, params, 1,
                          take_undelivered, diag);
    for (size_t i = 0; i < report->nconsumers; i++) {
        struct status_consumer *consumer = &report->consumers[i];

        unresolved = unresolved || consumer->unresolved;
        if (consumer->nundelivered > 0)
            qsort(consumer->undelivered, consumer->nundelivered,
                  sizeof(*consumer->undelivered), by_status);
    }
    if (status == STATUS_OK && unresolved)
        status = read_all(lookup, SQL_STATUS_BLOCKED, params, 1, take_blocked,
                          diag);
    if (status == STATUS_OK)
        status = read_last_failures(lookup, diag);
    if (status == STATUS_OK && lookup->only != NULL)
        status = read_all(lookup, SQL_STATUS_FAILED_MESSAGES, params, 2,
                          take_failed, diag);
    return status;
}

/* --- lag ------------------------------------------------------------------ */

static enum status read_lag(const struct status_reading *reading,
                            struct status_lag_counts *counts,
                            struct status_consumer *consumer,
                            const struct found *found, struct diag *diag)
{
    const struct declaration *declaration = status_consumer_declaration(
        reading->request, consumer);
    const struct status_topic *topic;
    struct status_lag lag;
    enum status status;

    if (found->source != NULL)
        consumer->source = found->source;
    if (declaration == NULL)
        return STATUS_OK;
    consumer->declared = true;
    consumer->source = declaration->source;
    consumer->lag = 0;
    topic = status_topic_find(
        reading->report,
        high_water_mark_of(reading->app->db, declaration->source));
    if (topic == NULL)
        return STATUS_OK;
    lag = (struct status_lag){
        .counts = counts,
        .declaration = declaration,
        .positions = found->positions,
        .count = found->npositions,
        .lowest = consumer->position,
        .upto = topic->end,
        .now_us = reading->now_us,
    };
    status = status_lag_read(reading->app, &lag, diag);
    consumer->lag = lag.messages;
    consumer->lag_us = lag.age_us;
    return status;
}

enum status status_consumers_read(struct status_reading *reading,
                                  struct diag *diag)
{
    struct status_report *report = reading->report;
    struct lookup lookup = {
        .reading = reading,
        .arena = &report->arena,
        .by_id = MAP_EMPTY,
        .met = MAP_EMPTY,
    };
    struct status_lag_counts counts = {.arena = &report->arena};
    size_t registered;
    enum status status = read_all(&lookup, SQL_STATUS_CONSUMERS, NULL, 0,
                                  take_consumer, diag);

    registered = report->nconsumers;
    add_new_consumers(reading);
    lookup.found = arena_alloc_zero(lookup.arena, (report->nconsumers + 1) *
                                                      sizeof(*lookup.found));
    if (status == STATUS_OK && registered > 0)
        status = read_stored(&lookup, diag);
    for (size_t i = 0; status == STATUS_OK && i < report->nconsumers; i++)
        status = read_lag(reading, &counts, &report->consumers[i],
                          &lookup.found[i], diag);
    map_free(&lookup.met);
    map_free(&lookup.by_id);
    return status;
}
