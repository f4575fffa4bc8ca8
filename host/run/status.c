#include "run/status.h"

#include "consumer/registry.h"
#include "run/status_compaction.h"
#include "run/status_consumer.h"
#include "run/status_deadlines.h"
#include "run/status_off.h"
#include "run/status_owner.h"
#include "run/status_problem.h"
#include "run/status_rate.h"
#include "run/status_saga.h"
#include "run/status_scripts.h"
#include "run/status_table.h"
#include "topic/high_water_mark.h"

#define NAMES_MAX 64 /* consumers named in a suggestion */

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

static enum status read_blocker(struct status_reading *reading,
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

static enum status read_topics(struct status_reading *reading,
                               struct diag *diag)
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

static void read_burden(struct status_reading *reading)
{
    struct buffer sentence = BUFFER_EMPTY;

    db_burden(reading->app->db, &sentence);
    if (sentence.len > 0)
        reading->report->burden = arena_string(&reading->report->arena,
                                               buffer_text(&sentence));
    buffer_free(&sentence);
}

static enum status unknown_consumer(struct status_reading *reading,
                                    struct diag *diag)
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
    struct status_reading reading = {
        .app = app,
        .request = request,
        .report = report,
        .now_us = clock_now(&app->clock),
    };
    enum status status;

    *report = (struct status_report){
        .arena = ARENA_EMPTY,
        .now_us = reading.now_us,
        .taken_us = clock_monotonic(),
    };
    status = db_begin_read(app->db, diag);
    if (status == STATUS_OK)
        status = read_topics(&reading, diag);
    if (status == STATUS_OK)
        status = status_consumers_read(&reading, diag);
    if (status == STATUS_OK)
        status = status_owners_read(&reading, diag);
    if (status == STATUS_OK)
        status = status_scripts_read(app, report, diag);
    if (status == STATUS_OK)
        status = status_deadlines_read(app, request, report, diag);
    if (status == STATUS_OK)
        status = status_compaction_read(app, report, diag);
    if (status == STATUS_OK)
        status = status_off_read(app, report, diag);
    if (status == STATUS_OK)
        status = outbox_list_pending(app->db, app->catalog, &report->arena,
                                     &report->pending, &report->npending, diag);
    if (status == STATUS_OK)
        status = status_saga_read(app, request, report, diag);
    if (status == STATUS_OK && request->before != NULL)
        status = status_rate_read(&reading, request->before, diag);
    read_burden(&reading);
    db_rollback(app->db);
    if (status == STATUS_OK && request->consumer != NULL &&
        report->nconsumers == 0)
        status = unknown_consumer(&reading, diag);
    if (status != STATUS_OK) {
        status_report_free(report);
        return status;
    }
    status = status_tables_read(app, request, report, diag);
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
    struct consumer_name name = {declaration_consumer_type(declaration),
                                 declaration->name};
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
