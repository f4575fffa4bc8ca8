#include "topic/retention.h"

#include "topic/high_water_mark.h"
#include "topic/message.h"

#include <assert.h>

/* Messages of one batch: a delete of so many holds no other writer up. */
#define BATCH INT64_C(1000)

/* What is decided under the lock of the mark's row. */
struct choice {
    struct high_water_mark mark;
    int64_t wanted;  /* by age and rows; at most BATCH messages further */
    int64_t slowest; /* lowest checkpoint; INT64_MAX: nobody is subscribed */
};

/* The goal by rows: the newest message that is one too many. */
static enum status find_goal(struct db *db, const struct catalog *catalog,
                             const struct retention_policy *policy,
                             const struct high_water_mark *mark,
                             struct retention *retention, struct diag *diag)
{
    const struct db_value params[] = {db_integer(mark->start),
                                      db_integer(mark->mark),
                                      db_integer(policy->max_rows)};
    int64_t goal;
    bool found;
    enum status status;

    /* no more messages than positions */
    if (mark->mark - mark->start <= policy->max_rows)
        return STATUS_OK;
    status = db_query_int64(db, catalog_sql(catalog, SQL_RETENTION_GOAL),
                            params, 3, &goal, &found, diag);
    if (status == STATUS_OK && found)
        retention->goal = goal;
    return status;
}

/* The oldest BATCH messages: up to where they are too old, and where they end
 * by number. */
static enum status choose(struct db *db, const struct catalog *catalog,
                          const struct retention_policy *policy, int64_t now_us,
                          const struct retention *retention,
                          struct choice *choice, struct diag *diag)
{
    const struct db_value params[] = {
        db_integer(choice->mark.start),
        db_integer(choice->mark.mark),
        db_integer(BATCH),
        policy->max_age_us > 0 ? db_timestamp(now_us - policy->max_age_us)
                               : db_null(),
        db_integer(retention->goal),
    };
    bool found;

    choice->wanted = choice->mark.start;
    return db_query_int64(db, catalog_sql(catalog, SQL_RETENTION_BATCH), params,
                          5, &choice->wanted, &found, diag);
}

static enum status find_slowest(struct db *db, const struct catalog *catalog,
                                int64_t *slowest, struct diag *diag)
{
    const struct db_value param = db_string(TOPIC_EVENT_CAPTURE);
    bool found;
    enum status status;

    status = db_query_int64(db, catalog_sql(catalog, SQL_RETENTION_SLOWEST),
                            &param, 1, slowest, &found, diag);
    if (!found)
        *slowest = INT64_MAX;
    return status;
}

static enum status move_start(struct db *db, const struct catalog *catalog,
                              int64_t start, struct diag *diag)
{
    const struct db_value params[] = {db_string(TOPIC_EVENT_CAPTURE),
                                      db_integer(start)};

    return db_execute(db, catalog_sql(catalog, SQL_RETENTION_START), params, 2,
                      NULL, diag);
}

static enum status decide(struct db *db, const struct catalog *catalog,
                          const struct retention_policy *policy, int64_t now_us,
                          bool counted, struct retention *retention,
                          struct retention_report *report, struct diag *diag)
{
    const struct db_value param = db_string(TOPIC_EVENT_CAPTURE);
    struct choice choice;
    int64_t held, start;
    bool found;
    enum status status;

    /* one that subscribes meanwhile finds the start where it is written */
    status = db_query_int64(db, catalog_sql(catalog, SQL_RETENTION_LOCK),
                            &param, 1, &held, &found, diag);
    if (status == STATUS_OK)
        status = high_water_mark_read(db, catalog, TOPIC_EVENT_CAPTURE,
                                      &choice.mark, diag);
    if (status == STATUS_OK && counted && policy->max_rows > 0)
        status = find_goal(db, catalog, policy, &choice.mark, retention, diag);
    if (status == STATUS_OK)
        status = choose(db, catalog, policy, now_us, retention, &choice, diag);
    if (status == STATUS_OK)
        status = find_slowest(db, catalog, &choice.slowest, diag);
    if (status != STATUS_OK)
        return status;
    start = choice.wanted;
    report->start = choice.mark.start;
    report->slowest = choice.slowest;
    if (start > choice.slowest && !policy->force)
        start = choice.slowest;
    if (start <= choice.mark.start)
        return STATUS_OK;
    report->passed = start > choice.slowest;
    report->start = start;
    report->more = start == choice.wanted;
    return move_start(db, catalog, start, diag);
}

/* Rows up to topic_start, which is committed. Where the last sweep ended the
 * next one begins: it walks over nothing that is deleted. */
static enum status sweep(struct db *db, const struct catalog *catalog,
                         struct retention *retention,
                         struct retention_report *report, struct diag *diag)
{
    const struct db_value params[] = {db_integer(retention->swept),
                                      db_integer(report->start),
                                      db_integer(BATCH)};
    enum status status = db_execute(db,
                                    catalog_sql(catalog, SQL_RETENTION_DELETE),
                                    params, 3, &report->deleted, diag);

    if (status != STATUS_OK)
        return status;
    if (report->deleted < BATCH)
        retention->swept = report->start;
    else
        report->more = true;
    return STATUS_OK;
}

static enum status end(struct db *db, enum status status, struct diag *diag)
{
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    if (status != STATUS_OK)
        db_rollback(db);
    return status;
}

enum status retention_step(struct db *db, const struct catalog *catalog,
                           const struct retention_policy *policy,
                           int64_t now_us, bool counted,
                           struct retention *retention,
                           struct retention_report *report, struct diag *diag)
{
    enum status status;

    assert(!db_in_transaction(db));
    *report = (struct retention_report){.deleted = 0};
    status = db_begin(db, diag);
    if (status != STATUS_OK)
        return status;
    status = end(
        db,
        decide(db, catalog, policy, now_us, counted, retention, report, diag),
        diag);
    if (status != STATUS_OK || retention->swept >= report->start)
        return status;
    status = db_begin(db, diag);
    if (status != STATUS_OK)
        return status;
    return end(db, sweep(db, catalog, retention, report, diag), diag);
}
