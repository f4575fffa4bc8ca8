#include "topic/read_model_off.h"

#include "topic/compaction.h"
#include "topic/message.h"
#include "topic/read_model_switch.h"

#include <inttypes.h>

/* Whoever subscribes meanwhile holds the row that is changed by now, and then
 * it is seen here, or asks for it later (read_model_switch_hold). */
static enum status check_readers(struct db *db, const struct catalog *catalog,
                                 const char *projection, struct diag *diag)
{
    struct buffer source = BUFFER_EMPTY;
    struct compaction_holder reader;
    enum status status;

    buffer_printf(&source, TOPIC_READ_MODEL "%s", projection);
    status = compaction_slowest(db, catalog, buffer_text(&source), &reader,
                                diag);
    if (status == STATUS_OK && reader.found)
        status = diag_set(diag, STATUS_REFUSED,
                          "%.40s '%.200s' reads the topic %.200s and stands at "
                          "%" PRId64 " in it: `moontide unsubscribe %.200s "
                          "--source %.200s` lets go of it",
                          buffer_text(&reader.type).data,
                          buffer_text(&reader.name).data, source.data,
                          reader.position, buffer_text(&reader.name).data,
                          source.data);
    compaction_holder_free(&reader);
    buffer_free(&source);
    return status;
}

static enum status off_locked(struct db *db, const struct catalog *catalog,
                              const char *projection, int64_t now_us,
                              bool *switched, struct diag *diag)
{
    const struct db_value params[] = {db_string(projection),
                                      db_timestamp(now_us)};
    int64_t count = 0;
    enum status status = read_model_switch_lock(db, catalog, projection, diag);

    if (status == STATUS_OK)
        status = db_execute(db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_OFF),
                            params, 2, &count, diag);
    if (status == STATUS_OK && count > 0)
        status = check_readers(db, catalog, projection, diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    *switched = status == STATUS_OK && count > 0;
    return status;
}

enum status read_model_switch_off(struct db *db, const struct catalog *catalog,
                                  const char *projection, int64_t now_us,
                                  bool *switched, struct diag *diag)
{
    enum status status = db_begin(db, diag);

    *switched = false;
    if (status == STATUS_OK)
        status = off_locked(db, catalog, projection, now_us, switched, diag);
    db_rollback(db);
    return status;
}

struct left {
    int64_t positions[READ_MODEL_OFF_BATCH];
    size_t count;
};

static enum status take_position(void *arg, struct db_rows *row,
                                 struct diag *diag)
{
    struct left *left = arg;

    (void)diag;
    left->positions[left->count++] = db_get_int64(row, 0);
    return STATUS_OK;
}

static enum status empty_some(struct db *db, const struct catalog *catalog,
                              const char *projection, struct left *left,
                              struct diag *diag)
{
    const struct db_value some[] = {db_string(projection),
                                    db_integer(READ_MODEL_OFF_BATCH)};
    enum status status = db_rows_each(
        db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_LEFT), some, 2,
        take_position, left, diag);
    const struct db_value gone[] = {db_string(projection),
                                    db_integers(left->positions, left->count)};

    if (status == STATUS_OK && left->count > 0)
        status = db_execute(db, catalog_sql(catalog, SQL_COMPACTION_DELETE),
                            gone, 2, NULL, diag);
    if (status == STATUS_OK && left->count == 0)
        status = db_execute(db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_GONE),
                            gone, 1, NULL, diag);
    return status == STATUS_OK ? db_commit(db, NULL, diag) : status;
}

enum status read_model_off_empty(struct db *db, const struct catalog *catalog,
                                 const char *projection, int64_t *deleted,
                                 bool *left, struct diag *diag)
{
    struct left found = {.count = 0};
    enum status status = db_begin(db, diag);

    if (status == STATUS_OK)
        status = empty_some(db, catalog, projection, &found, diag);
    db_rollback(db);
    *deleted = (int64_t)found.count;
    *left = status == STATUS_OK && found.count > 0;
    return status;
}

struct listing {
    read_model_topic_fn fn;
    void *arg;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct listing *listing = arg;
    const struct read_model_topic_row found = {
        .projection = db_get_text(row, 0),
        .on_at = db_get_timestamp(row, 1),
        .filled = !db_is_null(row, 2),
        .off_at = db_is_null(row, 3) ? 0 : db_get_timestamp(row, 3),
    };

    (void)diag;
    listing->fn(listing->arg, &found);
    return STATUS_OK;
}

enum status read_model_off_list(struct db *db, const struct catalog *catalog,
                                read_model_topic_fn fn, void *arg,
                                struct diag *diag)
{
    struct listing listing = {fn, arg};

    return db_rows_each(db, catalog_sql(catalog, SQL_READ_MODEL_TOPICS_LIST),
                        NULL, 0, take_row, &listing, diag);
}
