#include "topic/read_model_switch.h"

#include "topic/message.h"

static bool has_sequence(const struct db *db)
{
    return (db_abilities(db) & DB_CAN_SEQUENCE) != 0;
}

struct reading {
    struct arena *arena;
    struct read_model_switch *state;
};

static enum status take_state(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct reading *reading = arg;

    (void)diag;
    reading->state->on = true;
    reading->state->filled = !db_is_null(row, 1);
    if (!db_is_null(row, 0))
        reading->state->through = arena_copy(reading->arena,
                                             db_get_text(row, 0));
    return STATUS_OK;
}

enum status read_model_switch_read(struct db *db, const struct catalog *catalog,
                                   const char *projection, struct arena *arena,
                                   struct read_model_switch *state,
                                   struct diag *diag)
{
    const struct db_value param = db_string(projection);
    struct reading reading = {arena, state};

    *state = (struct read_model_switch){.on = false};
    return db_rows_each(db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_READ),
                        &param, 1, take_state, &reading, diag);
}

enum status read_model_switch_lock(struct db *db, const struct catalog *catalog,
                                   const char *projection, struct diag *diag)
{
    const struct db_value param = db_string(projection);
    int64_t count;
    bool found;

    return db_query_int64(db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_LOCK),
                          &param, 1, &count, &found, diag);
}

enum status read_model_switch_hold(struct db *db, const struct catalog *catalog,
                                   const char *projection, bool *on,
                                   struct diag *diag)
{
    const struct db_value param = db_string(projection);
    int64_t one;

    return db_query_int64(db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_HOLD),
                          &param, 1, &one, on, diag);
}

/* Where each topic has a counter, it begins with the topic. */
static enum status seed_counter(struct db *db, const struct catalog *catalog,
                                const char *projection, struct diag *diag)
{
    const struct db_value param = db_string(projection);

    if (has_sequence(db))
        return STATUS_OK;
    return db_execute(db, catalog_sql(catalog, SQL_READ_MODEL_COUNTER_SEED),
                      &param, 1, NULL, diag);
}

static enum status switch_locked(struct db *db, const struct catalog *catalog,
                                 const char *projection, int64_t now_us,
                                 struct diag *diag)
{
    const struct db_value params[] = {db_string(projection),
                                      db_timestamp(now_us)};
    int64_t count = 0;
    enum status status = read_model_switch_lock(db, catalog, projection, diag);

    if (status == STATUS_OK)
        status = seed_counter(db, catalog, projection, diag);
    if (status == STATUS_OK)
        status = db_execute(db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_ON),
                            params, 2, &count, diag);
    if (status == STATUS_OK && count == 0)
        status = diag_set(diag, STATUS_CONFLICT,
                          "the topic " TOPIC_READ_MODEL
                          "%.200s is switched on or off by somebody else",
                          projection);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    return status;
}

enum status read_model_switch_on(struct db *db, const struct catalog *catalog,
                                 const char *projection, int64_t now_us,
                                 bool *switched, struct diag *diag)
{
    struct arena arena = ARENA_EMPTY;
    struct read_model_switch state;
    enum status status = db_begin_read(db, diag);

    *switched = false;
    if (status == STATUS_OK)
        status = read_model_switch_read(db, catalog, projection, &arena, &state,
                                        diag);
    db_rollback(db);
    arena_free(&arena);
    if (status != STATUS_OK || state.on)
        return status;
    status = db_begin(db, diag);
    if (status == STATUS_OK)
        status = switch_locked(db, catalog, projection, now_us, diag);
    db_rollback(db);
    *switched = status == STATUS_OK;
    return status;
}

enum status read_model_switch_filled(struct db *db,
                                     const struct catalog *catalog,
                                     const char *projection, struct text before,
                                     struct text through, bool last,
                                     int64_t now_us, struct diag *diag)
{
    const struct db_value params[] = {
        db_string(projection), db_text_value(before), db_text_value(through),
        last ? db_timestamp(now_us) : db_null()};

    return db_queue(db, catalog_sql(catalog, SQL_READ_MODEL_TOPIC_FILLED),
                    params, 4, 1, 0, diag);
}

struct listing {
    read_model_unfilled_fn fn;
    void *arg;
};

static enum status take_name(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct listing *listing = arg;

    (void)diag;
    listing->fn(listing->arg, db_get_text(row, 0));
    return STATUS_OK;
}

enum status read_model_switch_unfilled(struct db *db,
                                       const struct catalog *catalog,
                                       read_model_unfilled_fn fn, void *arg,
                                       struct diag *diag)
{
    struct listing listing = {fn, arg};

    return db_rows_each(db,
                        catalog_sql(catalog, SQL_READ_MODEL_TOPICS_UNFILLED),
                        NULL, 0, take_name, &listing, diag);
}

enum status read_model_positions_mend(struct db *db,
                                      const struct catalog *catalog,
                                      const char *projection, struct diag *diag)
{
    int64_t moved;
    bool found;
    enum status status = db_begin(db, diag);

    if (status == STATUS_OK)
        status = has_sequence(db)
                     ? db_query_int64(
                           db,
                           catalog_sql(catalog, SQL_READ_MODEL_SEQUENCE_MEND),
                           NULL, 0, &moved, &found, diag)
                     : seed_counter(db, catalog, projection, diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    return status;
}
