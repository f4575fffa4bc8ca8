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
    const char **ids; /* of the consumers in the report that are registered */
    int64_t now_us;
};

/* One consumer while it is read. */
struct one {
    struct arena *arena;
    struct status_consumer *consumer;
    const char *source; /* of its checkpoints */
    int64_t *positions; /* by partition */
    size_t npositions;
};

/* --- topics -------------------------------------------------------------- */

static enum status take_topic_name(void *arg, struct db_rows *row,
                                   struct diag *diag)
{
    struct status_report *report = arg;

    (void)diag;
    report->topics = arena_grow(&report->arena, report->topics, report->ntopics,
                                sizeof(*report->topics));
    report->topics[report->ntopics++].name = arena_string(&report->arena,
                                                          db_get_text(row, 0));
    return STATUS_OK;
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
    enum status status = db_rows_each(
        reading->app->db, catalog_sql(reading->app->catalog, SQL_STATUS_TOPICS),
        NULL, 0, take_topic_name, report, diag);

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

static void compare(const struct reading *reading,
                    struct status_consumer *consumer, struct text stored)
{
    const struct declaration *declaration = find_declaration(reading, consumer);

    if (declaration == NULL)
        return;
    consumer->rebuild_on_change = declaration->rebuild_on_change;
    if (stored.data != NULL)
        consumer->change = fingerprint_compare(stored,
                                               &declaration->fingerprint);
}

static enum status take_consumer(void *arg, struct db_rows *row,
                                 struct diag *diag)
{
    struct reading *reading = arg;
    struct arena *arena = &reading->report->arena;
    const char *name = arena_string(arena, db_get_text(row, 2));
    struct status_consumer *consumer;

    (void)diag;
    if (!wanted(reading, name))
        return STATUS_OK;
    reading->ids = arena_grow(arena, reading->ids, reading->report->nconsumers,
                              sizeof(*reading->ids));
    reading->ids[reading->report->nconsumers] = arena_string(
        arena, db_get_text(row, 0));
    consumer = add_consumer(reading, arena_string(arena, db_get_text(row, 1)),
                            name);
    consumer->registered = true;
    consumer->state = "RUNNING";
    if (!db_is_null(row, 3))
        consumer->state = arena_string(arena, db_get_text(row, 3));
    if (!db_is_null(row, 4))
        consumer->halt_reason = arena_string(arena, db_get_text(row, 4));
    if (!db_is_null(row, 5))
        consumer->epoch = db_get_int64(row, 5);
    consumer->state_since = db_get_timestamp(row, 6);
    compare(reading, consumer,
            db_is_null(row, 7) ? TEXT_NONE : db_get_text(row, 7));
    return STATUS_OK;
}

static enum status take_position(void *arg, struct db_rows *row,
                                 struct diag *diag)
{
    struct one *one = arg;
    int64_t partition = db_get_int64(row, 1);

    (void)diag;
    if (one->source == NULL)
        one->source = arena_string(one->arena, db_get_text(row, 0));
    /* the rows are numbered from 0 without a hole */
    if (!text_equal(text_of(one->source), db_get_text(row, 0)) ||
        partition != (int64_t)one->npositions)
        return STATUS_OK;
    one->positions = arena_grow(one->arena, one->positions, one->npositions,
                                sizeof(*one->positions));
    one->positions[one->npositions++] = db_is_null(row, 2)
                                            ? 0
                                            : db_get_int64(row, 2);
    return STATUS_OK;
}

static enum status take_undelivered(void *arg, struct db_rows *row,
                                    struct diag *diag)
{
    struct one *one = arg;
    struct status_consumer *consumer = one->consumer;

    (void)diag;
    consumer->undelivered = arena_grow(one->arena, consumer->undelivered,
                                       consumer->nundelivered,
                                       sizeof(*consumer->undelivered));
    consumer
        ->undelivered[consumer->nundelivered++] = (struct status_undelivered){
        .status = arena_string(one->arena, db_get_text(row, 0)),
        .count = db_get_int64(row, 1),
    };
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
    struct one *one = arg;

    (void)diag;
    one->consumer->failure = failure_of(row, one->arena);
    one->consumer->failure.recorded_at = db_get_timestamp(row, 5);
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

static enum status take_failed(void *arg, struct db_rows *row,
                               struct diag *diag)
{
    struct one *one = arg;
    struct status_consumer *consumer = one->consumer;
    struct status_failure *failed;

    (void)diag;
    consumer->failed = arena_grow(one->arena, consumer->failed,
                                  consumer->nfailed, sizeof(*consumer->failed));
    failed = &consumer->failed[consumer->nfailed++];
    *failed = failure_of(row, one->arena);
    if (!db_is_null(row, 5))
        failed->type = type_of_copy(db_get_text(row, 5), one->arena);
    return STATUS_OK;
}

/* What is stored of a registered consumer. */
static enum status read_stored(const struct reading *reading, const char *id,
                               struct one *one, struct diag *diag)
{
    static const struct {
        enum sql_statement sql;
        db_row_fn take;
        size_t nparams;
        bool of_one; /* only when one consumer is asked for */
    } reads[] = {
        {SQL_STATUS_CHECKPOINTS, take_position, 1, false},
        {SQL_STATUS_UNDELIVERED, take_undelivered, 1, false},
        {SQL_STATUS_LAST_FAILURE, take_last_failure, 1, false},
        {SQL_STATUS_FAILED_MESSAGES, take_failed, 2, true},
    };
    const struct db_value params[] = {db_string(id),
                                      db_integer(STATUS_FAILED_LIMIT)};
    enum status status = STATUS_OK;

    for (size_t i = 0;
         status == STATUS_OK && i < sizeof(reads) / sizeof(reads[0]); i++) {
        if (reads[i].of_one && reading->request->consumer == NULL)
            continue;
        status = db_rows_each(
            reading->app->db, catalog_sql(reading->app->catalog, reads[i].sql),
            params, reads[i].nparams, reads[i].take, one, diag);
    }
    return status;
}

static enum status read_consumer(struct reading *reading, const char *id,
                                 struct status_consumer *consumer,
                                 struct diag *diag)
{
    const struct declaration *declaration = find_declaration(reading, consumer);
    struct one one = {.arena = &reading->report->arena, .consumer = consumer};
    const struct status_topic *topic;
    struct status_lag lag;
    enum status status = STATUS_OK;

    if (id != NULL)
        status = read_stored(reading, id, &one, diag);
    if (status != STATUS_OK)
        return status;

    if (one.npositions > 0) {
        consumer->source = one.source;
        consumer->position = one.positions[0];
    }
    for (size_t i = 1; i < one.npositions; i++) {
        if (one.positions[i] < consumer->position)
            consumer->position = one.positions[i];
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
        .positions = one.positions,
        .count = one.npositions,
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
    size_t registered;
    enum status status = db_rows_each(
        reading->app->db,
        catalog_sql(reading->app->catalog, SQL_STATUS_CONSUMERS), NULL, 0,
        take_consumer, reading, diag);

    if (status != STATUS_OK)
        return status;
    registered = report->nconsumers;
    add_new_consumers(reading);
    for (size_t i = 0; status == STATUS_OK && i < report->nconsumers; i++)
        status = read_consumer(reading, i < registered ? reading->ids[i] : NULL,
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

struct source_positions {
    const char *source;
    int64_t *at; /* by partition */
    size_t count;
};

static enum status take_source_position(void *arg, struct db_rows *row,
                                        struct diag *diag)
{
    const struct source_positions *positions = arg;
    int64_t partition = db_get_int64(row, 1);

    (void)diag;
    if (partition >= 0 && (size_t)partition < positions->count &&
        !db_is_null(row, 2) &&
        text_equal(db_get_text(row, 0), text_of(positions->source)))
        positions->at[partition] = db_get_int64(row, 2);
    return STATUS_OK;
}

enum status status_positions(struct application *app,
                             const struct declaration *declaration,
                             int64_t *positions, size_t count,
                             struct diag *diag)
{
    struct consumer_name name = {CONSUMER_TYPE_PROJECTION, declaration->name};
    struct source_positions taken = {declaration->source, positions, count};
    struct consumer_row row;
    struct db_value param;
    enum status status;

    memset(positions, 0, count * sizeof(*positions));
    status = registry_read(app->db, app->catalog, &name, &row, diag);
    if (status != STATUS_OK || !row.exists)
        return status;
    param = db_string(row.id);
    return db_rows_each(app->db,
                        catalog_sql(app->catalog, SQL_STATUS_CHECKPOINTS),
                        &param, 1, take_source_position, &taken, diag);
}

void status_report_free(struct status_report *report)
{
    arena_free(&report->arena);
    *report = (struct status_report){.arena = ARENA_EMPTY};
}
