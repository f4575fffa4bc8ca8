#include "topic/high_water_mark.h"

#include "topic/mark_horizon.h"
#include "topic/read_model_topic.h"

#include <assert.h>
#include <inttypes.h>

/* Tries of the compare-and-set before another host counts as a conflict. */
#define ADVANCE_TRIES 10

static enum status read_row(struct db_rows *rows, const char *topic,
                            struct high_water_mark *mark, bool *left,
                            struct diag *diag)
{
    bool more;
    enum status status = db_next(rows, &more, diag);

    if (status != STATUS_OK)
        return status;
    if (!more)
        return diag_set(diag, STATUS_CONFIG,
                        "topic %s has no high-water mark in this database; run "
                        "`moontide schema upgrade`",
                        topic);
    if (db_is_null(rows, 2))
        return diag_set(diag, STATUS_CONFIG,
                        "topic %s has no position counter in this database; "
                        "run `moontide schema upgrade`",
                        topic);
    mark->mark = db_get_int64(rows, 0);
    mark->start = db_get_int64(rows, 1);
    mark->end = db_get_int64(rows, 2);
    *left = db_get_bool(rows, 3);
    return db_next(rows, &more, diag);
}

static bool has_sequence(const struct db *db)
{
    return (db_abilities(db) & DB_CAN_SEQUENCE) != 0;
}

const char *high_water_mark_of(const struct db *db, const char *topic)
{
    if (has_sequence(db) && read_model_topic_projection(topic) != NULL)
        return HIGH_WATER_MARK_READ_MODELS;
    return topic;
}

static enum status read_as(struct db *db, const struct catalog *catalog,
                           const char *topic, const char *owner,
                           struct high_water_mark *mark, bool *left,
                           struct diag *diag)
{
    const struct db_value params[] = {db_string(topic), db_string(owner)};
    struct high_water_mark read = {0};
    struct db_rows *rows;
    enum status status;

    status = db_query(db, catalog_sql(catalog, SQL_MARK_READ), params, 2, &rows,
                      diag);
    if (status != STATUS_OK)
        return status;
    status = read_row(rows, topic, &read, left, diag);
    db_rows_close(rows);
    if (status == STATUS_OK)
        *mark = read;
    return status;
}

enum status high_water_mark_read(struct db *db, const struct catalog *catalog,
                                 const char *topic,
                                 struct high_water_mark *mark,
                                 struct diag *diag)
{
    bool left;

    return read_as(db, catalog, high_water_mark_of(db, topic), NULL, mark,
                   &left, diag);
}

enum status high_water_mark_leave(struct db *db, const struct catalog *catalog,
                                  const char *owner, struct diag *diag)
{
    const struct db_value param = db_string(owner);
    enum status status = db_begin(db, diag);

    if (status == STATUS_OK)
        status = db_queue(db, catalog_sql(catalog, SQL_MARK_LEAVE), &param, 1,
                          DB_ANY_ROWS, -1, diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    return status;
}

enum status high_water_mark_check(const char *topic,
                                  const struct high_water_mark *mark,
                                  struct diag *diag)
{
    if (mark->end >= mark->mark)
        return STATUS_OK;
    return diag_set(
        diag, STATUS_REFUSED,
        "topic %s ends at position %" PRId64
        ", below its high-water mark %" PRId64
        ": this is an older copy of the database, and consumers have "
        "seen positions that it lacks; restore the newer copy, or "
        "rebuild the consumers",
        topic, mark->end, mark->mark);
}

/* *moved is false when another host was first. */
static enum status move(struct db *db, const struct catalog *catalog,
                        const char *topic, const struct mark_detector *detector,
                        const struct high_water_mark *mark, bool *moved,
                        struct diag *diag)
{
    const struct db_value params[] = {
        db_string(topic), db_integer(mark->mark), db_integer(mark->end),
        db_string(detector->owner), db_integer(detector->lease_us)};
    int64_t affected = 0;
    enum status status;

    status = db_begin(db, diag);
    if (status != STATUS_OK)
        return status;
    status = db_execute(db, catalog_sql(catalog, SQL_MARK_ADVANCE), params, 5,
                        &affected, diag);
    if (status == STATUS_OK && affected == 1)
        status = db_commit(db, NULL, diag);
    else
        db_rollback(db);
    *moved = affected == 1;
    return status;
}

static enum status follow_counter(struct db *db, const struct catalog *catalog,
                                  const char *topic,
                                  struct mark_detector *detector,
                                  struct high_water_mark *mark,
                                  struct diag *diag)
{
    struct high_water_mark read;

    for (int i = 0; i < ADVANCE_TRIES; i++) {
        bool moved = false;
        enum status status = read_as(db, catalog, topic, detector->owner, &read,
                                     &detector->left, diag);

        if (status != STATUS_OK)
            return status;
        status = high_water_mark_check(topic, &read, diag);
        if (status != STATUS_OK)
            return status;
        if (read.end == read.mark || detector->left) {
            *mark = read;
            return STATUS_OK;
        }
        status = move(db, catalog, topic, detector, &read, &moved, diag);
        if (status != STATUS_OK)
            return status;
        if (moved) {
            read.mark = read.end;
            *mark = read;
            return STATUS_OK;
        }
    }
    return diag_set(diag, STATUS_CONFLICT,
                    "the high-water mark of topic %s was moved by others at "
                    "every try",
                    topic);
}

enum status high_water_mark_detect(struct db *db, const struct catalog *catalog,
                                   const char *topic,
                                   struct mark_detector *detector,
                                   struct high_water_mark *mark,
                                   struct diag *diag)
{
    assert(!db_in_transaction(db));
    if (has_sequence(db))
        return mark_horizon_advance(db, catalog, high_water_mark_of(db, topic),
                                    detector, mark, diag);
    return follow_counter(db, catalog, topic, detector, mark, diag);
}

enum status high_water_mark_advance(struct db *db,
                                    const struct catalog *catalog,
                                    const char *topic,
                                    struct high_water_mark *mark,
                                    struct diag *diag)
{
    struct mark_detector detector = {.blocked = ""};

    return high_water_mark_detect(db, catalog, topic, &detector, mark, diag);
}

enum status high_water_mark_look(struct db *db, const struct catalog *catalog,
                                 const char *topic, int64_t *upto,
                                 struct diag *diag)
{
    struct high_water_mark mark;
    bool held = false;
    enum status status;

    assert(!db_in_transaction(db));
    status = high_water_mark_read(db, catalog, topic, &mark, diag);
    if (status == STATUS_OK && has_sequence(db) && mark.end > mark.mark)
        status = mark_horizon_held(db, catalog, high_water_mark_of(db, topic),
                                   &held, diag);
    if (status != STATUS_OK)
        return status;
    *upto = held || mark.end < mark.mark ? mark.mark : mark.end;
    return STATUS_OK;
}

enum status high_water_mark_blocker(struct db *db,
                                    const struct catalog *catalog,
                                    const char *topic, struct buffer *out,
                                    struct diag *diag)
{
    if (!has_sequence(db))
        return STATUS_OK;
    return mark_horizon_blocker(db, catalog, high_water_mark_of(db, topic), out,
                                diag);
}

int64_t high_water_mark_readable(const struct db *db,
                                 const struct high_water_mark *mark)
{
    if (has_sequence(db) || mark->end < mark->mark)
        return mark->mark;
    return mark->end;
}
