#include "consumer/checkpoint.h"

#include "base/memory.h"

void checkpoints_init(struct checkpoints *checkpoints, int partitions)
{
    checkpoints->partitions = partitions;
    checkpoints->position = mem_grow(NULL, (size_t)partitions,
                                     sizeof(*checkpoints->position));
    for (int p = 0; p < partitions; p++)
        checkpoints->position[p] = CHECKPOINT_NONE;
}

void checkpoints_free(struct checkpoints *checkpoints)
{
    mem_free(checkpoints->position);
    *checkpoints = (struct checkpoints){.partitions = 0};
}

/* One row: partition, position, end of the replay, mark of missing history,
 * state, reason, epoch, two flags. */
static enum status row_take_of(struct db_rows *rows, bool first, int expected,
                               struct checkpoints *stored,
                               struct checkpoint_lock *lock, struct diag *diag)
{
    int64_t partition = db_get_int64(rows, 0);

    if (partition != expected || expected >= stored->partitions)
        return diag_set(diag, STATUS_REFUSED,
                        "the checkpoint rows name partition %lld where %d was "
                        "expected; the partition count is %d",
                        (long long)partition, expected, stored->partitions);
    stored->position[partition] = db_is_null(rows, 1) ? CHECKPOINT_NONE
                                                      : db_get_int64(rows, 1);
    if (first) {
        lock->replay_through = CHECKPOINT_NONE;
        lock->incomplete = false;
    }
    if (!db_is_null(rows, 2) && db_get_int64(rows, 2) > lock->replay_through)
        lock->replay_through = db_get_int64(rows, 2);
    lock->incomplete |= !db_is_null(rows, 3);
    if (!first)
        return STATUS_OK; /* the rest is the same in every row */
    lock->epoch = db_is_null(rows, 6) ? 0 : db_get_int64(rows, 6);
    lock->undelivered = db_get_bool(rows, 7);
    lock->skipped = db_get_bool(rows, 8);
    return consumer_state_parse(
        db_is_null(rows, 4) ? TEXT_NONE : db_get_text(rows, 4),
        db_is_null(rows, 5) ? TEXT_NONE : db_get_text(rows, 5), &lock->state,
        &lock->halt_reason, diag);
}

/* The same, with the consumer in what it says: rows may be changed by hand. */
static enum status row_take(struct db_rows *rows, bool first, int expected,
                            const char *consumer_id, struct checkpoints *stored,
                            struct checkpoint_lock *lock, struct diag *diag)
{
    enum status status = row_take_of(rows, first, expected, stored, lock, diag);

    return status == STATUS_OK ? STATUS_OK
                               : diag_wrap(diag, "consumer %s", consumer_id);
}

static enum status read_all(struct db *db, const struct db_sql *sql,
                            const char *consumer_id, const char *source,
                            struct checkpoints *stored,
                            struct checkpoint_lock *lock, struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id),
                                      db_string(source)};
    struct db_rows *rows;
    int count = 0;
    bool more = false;
    enum status status;

    status = db_query(db, sql, params, 2, &rows, diag);
    if (status != STATUS_OK)
        return status;
    for (;;) {
        status = db_next(rows, &more, diag);
        if (status != STATUS_OK || !more)
            break;
        status = row_take(rows, count == 0, count, consumer_id, stored, lock,
                          diag);
        if (status != STATUS_OK)
            break;
        count++;
    }
    db_rows_close(rows);
    if (status == STATUS_OK && count != stored->partitions)
        return diag_set(diag, STATUS_REFUSED,
                        "%d of %d checkpoint rows of '%s' are gone: the "
                        "consumer was unsubscribed while it ran",
                        stored->partitions - count, stored->partitions, source);
    return status;
}

enum status checkpoint_lock(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            struct checkpoints *stored,
                            struct checkpoint_lock *lock, struct diag *diag)
{
    return read_all(db, catalog_sql(catalog, SQL_CHECKPOINT_LOCK), consumer_id,
                    source, stored, lock, diag);
}

/* Columns behind those of row_take. */
enum { COLUMN_INSTANCE = 9, COLUMN_GENERATION, COLUMN_TOPIC };

static bool is_held(struct db_rows *rows, const char *instance,
                    int64_t generation)
{
    return !db_is_null(rows, COLUMN_INSTANCE) &&
           text_equal(db_get_text(rows, COLUMN_INSTANCE), text_of(instance)) &&
           db_get_int64(rows, COLUMN_GENERATION) == generation;
}

enum status checkpoint_take(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            const struct leases *leases, const char *instance,
                            struct checkpoints *stored,
                            struct checkpoint_lock *lock, int *lost,
                            struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_integers(leases->mine, leases->count)};
    struct db_rows *rows;
    size_t count = 0;
    bool more = false;
    enum status status = db_query(db, catalog_sql(catalog, SQL_CHECKPOINT_TAKE),
                                  params, 3, &rows, diag);

    *lost = -1;
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        int partition = (int)leases->mine[count];

        /* a lease without a row was given up, or its consumer is gone */
        if (db_get_int64(rows, 0) != partition ||
            !is_held(rows, instance, leases->generations[count])) {
            *lost = partition;
            break;
        }
        status = row_take(rows, count == 0, partition, consumer_id, stored,
                          lock, diag);
        lock->topic_on = db_get_bool(rows, COLUMN_TOPIC);
        if (status != STATUS_OK || ++count == leases->count)
            break;
    }
    db_rows_close(rows);
    if (status == STATUS_OK && *lost < 0 && count < leases->count)
        *lost = (int)leases->mine[count];
    return status;
}

enum status checkpoint_still(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, int64_t epoch,
                             bool topic_on, struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_integer(epoch),
                                      db_boolean(topic_on)};

    if ((db_abilities(db) & DB_SEES_EARLIER) == 0)
        return STATUS_OK;
    return db_queue(db, catalog_sql(catalog, SQL_CONSUMER_STILL), params, 3, 1,
                    -1, diag);
}

enum status checkpoint_read(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            struct checkpoints *stored,
                            struct checkpoint_lock *lock, struct diag *diag)
{
    return read_all(db, catalog_sql(catalog, SQL_CHECKPOINT_READ), consumer_id,
                    source, stored, lock, diag);
}

enum status checkpoint_reset(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, const char *source,
                             int64_t epoch, int64_t replay_through,
                             struct diag *diag)
{
    const struct db_value params[] = {
        db_string(consumer_id), db_string(source), db_integer(epoch),
        replay_through == CHECKPOINT_NONE ? db_null()
                                          : db_integer(replay_through)};

    return db_queue(db, catalog_sql(catalog, SQL_CHECKPOINT_RESET), params, 4,
                    DB_ANY_ROWS, -1, diag);
}

enum status checkpoint_replayed(struct db *db, const struct catalog *catalog,
                                const char *consumer_id, const char *source,
                                struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id),
                                      db_string(source)};

    return db_queue(db, catalog_sql(catalog, SQL_CHECKPOINT_REPLAYED), params,
                    2, DB_ANY_ROWS, -1, diag);
}

enum status checkpoint_advance(struct db *db, const struct catalog *catalog,
                               const char *consumer_id, const char *source,
                               const int64_t *partitions, size_t count,
                               int64_t position, struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_integers(partitions, count),
                                      db_integer(position)};

    return db_queue(db, catalog_sql(catalog, SQL_CHECKPOINT_ADVANCE), params, 4,
                    (int64_t)count, -1, diag);
}
