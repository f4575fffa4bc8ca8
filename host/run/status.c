#include "run/status.h"

#include "consumer/message_copy.h"
#include "consumer/registry.h"
#include "run/status_lag.h"
#include "run/status_problem.h"
#include "topic/high_water_mark.h"

#include <inttypes.h>

#define NAMES_MAX 64 /* consumers named in a suggestion */

/* One reading; everything lives in the report's arena. */
struct reading {
    struct application *app;
    const struct status_request *request;
    struct status_report *report;
    int64_t now_us;
};

/* One consumer's checkpoints of a source. */
struct positions {
    const char *source;
    int64_t *at; /* by partition */
    size_t count;
};

static const struct db_sql *statement(const struct reading *reading,
                                      enum sql_statement which)
{
    return catalog_sql(reading->app->catalog, which);
}

/* --- topics -------------------------------------------------------------- */

static enum status read_topic_names(struct reading *reading, struct diag *diag)
{
    struct status_report *report = reading->report;
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(reading->app->db,
                                  statement(reading, SQL_STATUS_TOPICS), NULL,
                                  0, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        report->topics = arena_grow(&report->arena, report->topics,
                                    report->ntopics, sizeof(*report->topics));
        report->topics[report->ntopics++].name = arena_string(
            &report->arena, db_get_text(rows, 0));
    }
    db_rows_close(rows);
    return status;
}

static enum status read_blocker(struct reading *reading,
                                struct status_topic *topic, struct diag *diag)
{
    struct buffer sentence = BUFFER_EMPTY;
    enum status status = high_water_mark_blocker(
        reading->app->db, reading->app->catalog, topic->name, &sentence, diag);

    if (status == STATUS_OK && sentence.len > 0)
        topic->blocked = arena_string(&reading->report->arena,
                                      buffer_text(&sentence));
    buffer_free(&sentence);
    return status;
}

static enum status read_topics(struct reading *reading, struct diag *diag)
{
    struct status_report *report = reading->report;
    size_t kept = 0;
    enum status status = read_topic_names(reading, diag);

    for (size_t i = 0; status == STATUS_OK && i < report->ntopics; i++) {
        struct status_topic *topic = &report->topics[i];
        struct high_water_mark mark;

        status = high_water_mark_read(reading->app->db, reading->app->catalog,
                                      topic->name, &mark, diag);
        if (status != STATUS_OK)
            break;
        /* a topic that never held anything is not worth a line */
        if (strcmp(topic->name, TOPIC_EVENT_STORE) != 0 && mark.end == 0 &&
            mark.mark == 0)
            continue;
        report->topics[kept] = (struct status_topic){
            .name = topic->name,
            .mark = mark.mark,
            .end = mark.end,
            .start = mark.start,
        };
        status = read_blocker(reading, &report->topics[kept++], diag);
    }
    report->ntopics = kept;
    return status;
}

static const struct status_topic *find_topic(const struct reading *reading,
                                             const char *name)
{
    for (size_t i = 0; i < reading->report->ntopics; i++) {
        if (strcmp(reading->report->topics[i].name, name) == 0)
            return &reading->report->topics[i];
    }
    return NULL;
}

/* --- consumers ----------------------------------------------------------- */

static bool wanted(const struct reading *reading, const char *name)
{
    return reading->request->consumer == NULL ||
           strcmp(reading->request->consumer, name) == 0;
}

static struct status_consumer *add_consumer(struct reading *reading,
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
    };
    return consumer;
}

static const struct declaration *
find_declaration(const struct reading *reading,
                 const struct status_consumer *consumer)
{
    if (strcmp(consumer->type, CONSUMER_TYPE_PROJECTION) != 0)
        return NULL;
    for (size_t i = 0; i < reading->request->ndeclarations; i++) {
        const struct declaration *declaration = &reading->request
                                                     ->declarations[i];

        if (strcmp(declaration->name, consumer->name) == 0)
            return declaration;
    }
    return NULL;
}

/* Rows first; ids are kept beside for the reads that follow. */
static enum status read_rows(struct reading *reading, const char ***ids,
                             struct diag *diag)
{
    struct arena *arena = &reading->report->arena;
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(reading->app->db,
                                  statement(reading, SQL_STATUS_CONSUMERS),
                                  NULL, 0, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        const char *name = arena_string(arena, db_get_text(rows, 2));
        struct status_consumer *consumer;

        if (!wanted(reading, name))
            continue;
        *ids = arena_grow(arena, *ids, reading->report->nconsumers,
                          sizeof(**ids));
        (*ids)[reading->report->nconsumers] = arena_string(
            arena, db_get_text(rows, 0));
        consumer = add_consumer(
            reading, arena_string(arena, db_get_text(rows, 1)), name);
        consumer->registered = true;
        consumer->state = "RUNNING";
        if (!db_is_null(rows, 3))
            consumer->state = arena_string(arena, db_get_text(rows, 3));
        if (!db_is_null(rows, 4))
            consumer->halt_reason = arena_string(arena, db_get_text(rows, 4));
        if (!db_is_null(rows, 5))
            consumer->epoch = db_get_int64(rows, 5);
        consumer->state_since = db_get_timestamp(rows, 6);
    }
    db_rows_close(rows);
    return status;
}

static enum status read_positions(struct reading *reading, const char *id,
                                  struct positions *positions,
                                  struct diag *diag)
{
    struct arena *arena = &reading->report->arena;
    struct db_value params[] = {db_string(id)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(reading->app->db,
                                  statement(reading, SQL_STATUS_CHECKPOINTS),
                                  params, 1, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        int64_t partition = db_get_int64(rows, 1);

        if (positions->source == NULL)
            positions->source = arena_string(arena, db_get_text(rows, 0));
        /* the rows are numbered from 0 without a hole */
        if (!text_equal(text_of(positions->source), db_get_text(rows, 0)) ||
            partition != (int64_t)positions->count)
            continue;
        positions->at = arena_grow(arena, positions->at, positions->count,
                                   sizeof(*positions->at));
        positions->at[positions->count++] = db_is_null(rows, 2)
                                                ? 0
                                                : db_get_int64(rows, 2);
    }
    db_rows_close(rows);
    return status;
}

static enum status read_undelivered(struct reading *reading, const char *id,
                                    struct status_consumer *consumer,
                                    struct diag *diag)
{
    struct arena *arena = &reading->report->arena;
    struct db_value params[] = {db_string(id)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(reading->app->db,
                                  statement(reading, SQL_STATUS_UNDELIVERED),
                                  params, 1, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        consumer->undelivered = arena_grow(arena, consumer->undelivered,
                                           consumer->nundelivered,
                                           sizeof(*consumer->undelivered));
        consumer->undelivered[consumer->nundelivered++] =
            (struct status_undelivered){
                .status = arena_string(arena, db_get_text(rows, 0)),
                .count = db_get_int64(rows, 1),
            };
    }
    db_rows_close(rows);
    return status;
}

static enum status read_failure(struct reading *reading, const char *id,
                                struct status_failure *failure,
                                struct diag *diag)
{
    struct arena *arena = &reading->report->arena;
    struct db_value params[] = {db_string(id)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(reading->app->db,
                                  statement(reading, SQL_STATUS_LAST_FAILURE),
                                  params, 1, &rows, diag);

    if (status != STATUS_OK)
        return status;
    status = db_next(rows, &more, diag);
    if (status == STATUS_OK && more) {
        *failure = (struct status_failure){
            .position = db_get_int64(rows, 0),
            .key = arena_string(arena, db_get_text(rows, 1)),
            .type = "",
            .status = arena_string(arena, db_get_text(rows, 2)),
            .count = db_get_int64(rows, 3),
            .reason = arena_string(arena, db_get_text(rows, 4)),
            .recorded_at = db_get_timestamp(rows, 5),
        };
        status = db_next(rows, &more, diag);
    }
    db_rows_close(rows);
    return status;
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

static enum status read_failed(struct reading *reading, const char *id,
                               struct status_consumer *consumer,
                               struct diag *diag)
{
    struct arena *arena = &reading->report->arena;
    struct db_value params[] = {db_string(id), db_integer(STATUS_FAILED_LIMIT)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(
        reading->app->db, statement(reading, SQL_STATUS_FAILED_MESSAGES),
        params, 2, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        consumer->failed = arena_grow(arena, consumer->failed,
                                      consumer->nfailed,
                                      sizeof(*consumer->failed));
        consumer->failed[consumer->nfailed++] = (struct status_failure){
            .position = db_get_int64(rows, 0),
            .key = arena_string(arena, db_get_text(rows, 1)),
            .status = arena_string(arena, db_get_text(rows, 2)),
            .count = db_get_int64(rows, 3),
            .reason = arena_string(arena, db_get_text(rows, 4)),
            .type = db_is_null(rows, 5)
                        ? ""
                        : type_of_copy(db_get_text(rows, 5), arena),
        };
    }
    db_rows_close(rows);
    return status;
}

static enum status read_consumer(struct reading *reading, const char *id,
                                 struct status_consumer *consumer,
                                 struct diag *diag)
{
    const struct declaration *declaration = find_declaration(reading, consumer);
    struct positions positions = {.count = 0};
    const struct status_topic *topic;
    struct status_lag lag;
    enum status status = STATUS_OK;

    if (id != NULL)
        status = read_positions(reading, id, &positions, diag);
    if (status == STATUS_OK && id != NULL)
        status = read_undelivered(reading, id, consumer, diag);
    if (status == STATUS_OK && id != NULL)
        status = read_failure(reading, id, &consumer->failure, diag);
    if (status == STATUS_OK && id != NULL && reading->request->consumer != NULL)
        status = read_failed(reading, id, consumer, diag);
    if (status != STATUS_OK)
        return status;

    if (positions.count > 0) {
        consumer->source = positions.source;
        consumer->position = positions.at[0];
    }
    for (size_t i = 1; i < positions.count; i++) {
        if (positions.at[i] < consumer->position)
            consumer->position = positions.at[i];
    }
    if (declaration == NULL)
        return STATUS_OK;
    consumer->declared = true;
    consumer->source = declaration->source;
    consumer->lag = 0;
    topic = find_topic(reading, declaration->source);
    if (topic == NULL)
        return STATUS_OK;
    lag = (struct status_lag){
        .declaration = declaration,
        .positions = positions.at,
        .count = positions.count,
        .lowest = consumer->position,
        .upto = topic->end,
        .now_us = reading->now_us,
    };
    status = status_lag_read(reading->app, &lag, diag);
    consumer->lag = lag.messages;
    consumer->lag_us = lag.age_us;
    return status;
}

static void add_new_consumers(struct reading *reading)
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
            add_consumer(reading, CONSUMER_TYPE_PROJECTION, name);
    }
}

static enum status read_consumers(struct reading *reading, struct diag *diag)
{
    struct status_report *report = reading->report;
    const char **ids = NULL;
    size_t registered;
    enum status status = read_rows(reading, &ids, diag);

    if (status != STATUS_OK)
        return status;
    registered = report->nconsumers;
    add_new_consumers(reading);
    for (size_t i = 0; status == STATUS_OK && i < report->nconsumers; i++)
        status = read_consumer(reading,
                               ids != NULL && i < registered ? ids[i] : NULL,
                               &report->consumers[i], diag);
    return status;
}

static enum status unknown_consumer(struct reading *reading, struct diag *diag)
{
    const struct status_request *request = reading->request;
    const char *names[NAMES_MAX + 1];
    const char *near;
    size_t count = 0;

    for (size_t i = 0; i < request->ndeclarations && count < NAMES_MAX; i++)
        names[count++] = request->declarations[i].name;
    names[count] = NULL;
    near = text_nearest(request->consumer, names);
    return diag_set(diag, STATUS_USAGE,
                    "no consumer is called '%.200s'%s%s%s; moontide status "
                    "lists them",
                    request->consumer, near != NULL ? "; did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?" : "");
}

enum status status_read(struct application *app,
                        const struct status_request *request,
                        struct status_report *report, struct diag *diag)
{
    struct reading reading = {
        .app = app,
        .request = request,
        .report = report,
        .now_us = clock_now(&app->clock),
    };
    enum status status;

    *report = (struct status_report){.arena = ARENA_EMPTY};
    status = db_begin_read(app->db, diag);
    if (status == STATUS_OK)
        status = read_topics(&reading, diag);
    if (status == STATUS_OK)
        status = read_consumers(&reading, diag);
    db_rollback(app->db);
    if (status == STATUS_OK && request->consumer != NULL &&
        report->nconsumers == 0)
        status = unknown_consumer(&reading, diag);
    if (status != STATUS_OK) {
        status_report_free(report);
        return status;
    }
    status_problem_find(request, report);
    return STATUS_OK;
}

enum status status_positions(struct application *app,
                             const struct declaration *declaration,
                             int64_t *positions, size_t count,
                             struct diag *diag)
{
    struct consumer_name name = {CONSUMER_TYPE_PROJECTION, declaration->name};
    struct consumer_row row;
    struct db_value params[1];
    struct db_rows *rows;
    bool more = false;
    enum status status;

    memset(positions, 0, count * sizeof(*positions));
    status = registry_read(app->db, app->catalog, &name, &row, diag);
    if (status != STATUS_OK || !row.exists)
        return status;
    params[0] = db_string(row.id);
    status = db_query(app->db,
                      catalog_sql(app->catalog, SQL_STATUS_CHECKPOINTS), params,
                      1, &rows, diag);
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        int64_t partition = db_get_int64(rows, 1);

        if (partition >= 0 && (size_t)partition < count &&
            !db_is_null(rows, 2) &&
            text_equal(db_get_text(rows, 0), text_of(declaration->source)))
            positions[partition] = db_get_int64(rows, 2);
    }
    db_rows_close(rows);
    return status;
}

void status_report_free(struct status_report *report)
{
    arena_free(&report->arena);
    *report = (struct status_report){.arena = ARENA_EMPTY};
}
