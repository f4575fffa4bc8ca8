#include "consumer/undelivered.h"

#include "base/hash.h"
#include "consumer/message_copy.h"

#include <limits.h>

static const char *const status_words[] = {
    [UNDELIVERED_FAILED] = "FAILED",
    [UNDELIVERED_WAITING] = "WAITING",
    [UNDELIVERED_HALTED] = "HALTED",
    [UNDELIVERED_DEAD_LETTER_KEY] = "DEAD_LETTER_KEY",
    [UNDELIVERED_DEAD_LETTER] = "DEAD_LETTER",
};

const char *undelivered_status_word(enum undelivered_status status)
{
    return status_words[status];
}

static bool status_parse(struct text word, enum undelivered_status *status)
{
    for (size_t i = 0; i < sizeof(status_words) / sizeof(status_words[0]); i++)
        if (text_equal(word, text_of(status_words[i]))) {
            *status = (enum undelivered_status)i;
            return true;
        }
    return false;
}

/* --- writing -------------------------------------------------------------- */

enum {
    COLUMN_ID,
    COLUMN_CONSUMER,
    COLUMN_SOURCE,
    COLUMN_KEY,
    COLUMN_KEY_HASH,
    COLUMN_POSITION,
    COLUMN_PARTITION,
    COLUMN_STATUS,
    COLUMN_FAILURES,
    COLUMN_NEXT_RETRY,
    COLUMN_REASON,
    COLUMN_RECORDED_AT,
    COLUMN_UNRESOLVED,
    COLUMN_COPY,
    COLUMNS,
};

static const struct db_column columns[COLUMNS] = {
    [COLUMN_ID] = {"id", DB_UUID, DB_KEY},
    [COLUMN_CONSUMER] = {"consumer_id", DB_TEXT, DB_SET},
    [COLUMN_SOURCE] = {"source_name", DB_TEXT, DB_SET},
    [COLUMN_KEY] = {"resolved_key", DB_TEXT, DB_SET},
    [COLUMN_KEY_HASH] = {"key_hash", DB_INT64, DB_SET},
    [COLUMN_POSITION] = {"message_position", DB_INT64, DB_SET},
    [COLUMN_PARTITION] = {"partition_no", DB_INT64, DB_SET},
    [COLUMN_STATUS] = {"status", DB_TEXT, DB_SET},
    [COLUMN_FAILURES] = {"failure_count", DB_INT64, DB_SET},
    [COLUMN_NEXT_RETRY] = {"next_retry_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_REASON] = {"failure_reason", DB_TEXT, DB_SET},
    [COLUMN_RECORDED_AT] = {"recorded_at", DB_TIMESTAMP, DB_SET},
    [COLUMN_UNRESOLVED] = {"unresolved", DB_BOOL, DB_SET},
    [COLUMN_COPY] = {"message_copy", DB_TEXT, DB_SET},
};

static struct db_value retry_time(const struct undelivered_entry *entry)
{
    return entry->status == UNDELIVERED_FAILED && entry->next_retry_at != 0
               ? db_timestamp(entry->next_retry_at)
               : db_null();
}

enum status undelivered_record(struct db *db, const struct names *names,
                               const char *consumer_id, const char *source,
                               const struct undelivered_entry *entries,
                               size_t count, struct uuid_source *ids,
                               int64_t now_us, struct arena *arena,
                               struct diag *diag)
{
    struct db_table *table;
    struct db_value *values;
    struct buffer copy = BUFFER_EMPTY;

    if (count == 0)
        return STATUS_OK;
    table = arena_alloc_zero(arena, sizeof(*table));
    *table = (struct db_table){
        .name = names->table[TABLE_UNDELIVERED],
        .columns = columns,
        .ncolumns = COLUMNS,
        .origin = DB_HOST,
    };
    values = arena_alloc(arena, count * COLUMNS * sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        const struct undelivered_entry *e = &entries[i];
        struct db_value *v = values + i * COLUMNS;
        struct text key = e->key.data != NULL ? e->key : TEXT_LITERAL("");

        buffer_clear(&copy);
        message_copy_write(e->message, &copy);
        v[COLUMN_ID] = db_uuid(uuid_v7(ids, now_us));
        v[COLUMN_CONSUMER] = db_string(consumer_id);
        v[COLUMN_SOURCE] = db_string(source);
        v[COLUMN_KEY] = db_text_value(key);
        v[COLUMN_KEY_HASH] = db_integer((int64_t)hash_fnv1a64(key));
        v[COLUMN_POSITION] = db_integer(e->message->position);
        v[COLUMN_PARTITION] = db_integer(e->partition);
        v[COLUMN_STATUS] = db_string(status_words[e->status]);
        v[COLUMN_FAILURES] = db_integer(e->failure_count);
        v[COLUMN_NEXT_RETRY] = retry_time(e);
        v[COLUMN_REASON] = db_string(e->failure != NULL ? e->failure->reason
                                                        : NULL);
        v[COLUMN_RECORDED_AT] = db_timestamp(now_us);
        v[COLUMN_UNRESOLVED] = db_boolean(e->unresolved);
        v[COLUMN_COPY] = db_text_value(arena_copy(arena, buffer_text(&copy)));
    }
    buffer_free(&copy);
    return db_queue_bulk(db, DB_INSERT, table, values, count, -1, diag);
}

enum status undelivered_delete(struct db *db, const struct catalog *catalog,
                               const struct text *ids, size_t count,
                               struct diag *diag)
{
    const struct db_value params[] = {db_texts(ids, count)};

    if (count == 0)
        return STATUS_OK;
    return db_queue(db, catalog_sql(catalog, SQL_UNDELIVERED_DELETE), params, 1,
                    (int64_t)count, -1, diag);
}

enum {
    FAIL_ID,
    FAIL_STATUS,
    FAIL_COUNT,
    FAIL_REASON,
    FAIL_RETRY,
    FAIL_COLUMNS
};

static const struct db_column fail_columns[FAIL_COLUMNS] = {
    [FAIL_ID] = {"id", DB_TEXT, DB_KEY},
    [FAIL_STATUS] = {"status", DB_TEXT, DB_SET},
    [FAIL_COUNT] = {"failure_count", DB_INT64, DB_SET},
    [FAIL_REASON] = {"failure_reason", DB_TEXT, DB_SET},
    [FAIL_RETRY] = {"next_retry_at", DB_TIMESTAMP, DB_SET},
};

enum status undelivered_fail(struct db *db, const struct names *names,
                             const struct undelivered_failed *rows,
                             size_t count, struct arena *arena,
                             struct diag *diag)
{
    struct db_table *table;
    struct db_value *values;

    if (count == 0)
        return STATUS_OK;
    table = arena_alloc_zero(arena, sizeof(*table));
    *table = (struct db_table){
        .name = names->table[TABLE_UNDELIVERED],
        .columns = fail_columns,
        .ncolumns = FAIL_COLUMNS,
        .origin = DB_HOST,
    };
    values = arena_alloc(arena, count * FAIL_COLUMNS * sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        const struct undelivered_entry *e = rows[i].entry;
        struct db_value *v = values + i * FAIL_COLUMNS;

        v[FAIL_ID] = db_string(rows[i].id);
        v[FAIL_STATUS] = db_string(status_words[e->status]);
        v[FAIL_COUNT] = db_integer(e->failure_count);
        v[FAIL_REASON] = db_string(e->failure->reason);
        v[FAIL_RETRY] = retry_time(e);
    }
    return db_queue_bulk(db, DB_UPDATE, table, values, count, -1, diag);
}

enum status undelivered_bury(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, const char *source,
                             const struct text *keys, size_t count,
                             struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_texts(keys, count)};

    if (count == 0)
        return STATUS_OK;
    return db_queue(db, catalog_sql(catalog, SQL_UNDELIVERED_BURY), params, 3,
                    DB_ANY_ROWS, -1, diag);
}

enum status undelivered_revive(struct db *db, const struct catalog *catalog,
                               const char *consumer_id, struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id)};

    return db_queue(db, catalog_sql(catalog, SQL_UNDELIVERED_REVIVE), params, 1,
                    DB_ANY_ROWS, -1, diag);
}

/* --- reading -------------------------------------------------------------- */

/* A copy that cannot be read is a fault of that message, not of the host. */
static void copy_take(struct text copy, struct arena *arena,
                      struct undelivered_row *row)
{
    struct failure *damage;
    struct diag diag;

    if (message_copy_read(arena_copy(arena, copy), arena, &row->message,
                          &diag) == STATUS_OK)
        return;
    damage = arena_alloc(arena, sizeof(*damage));
    failure_set(damage, false, "decode", "%s", diag.message);
    row->damage = damage;
    row->message = (struct message){.type = TEXT_LITERAL("a message")};
}

/* Whoever changes rows by hand may write any number. */
static int failures_take(int64_t stored)
{
    if (stored < 0)
        return 0;
    return stored < INT_MAX ? (int)stored : INT_MAX;
}

static struct text text_take(struct db_rows *rows, int column,
                             struct arena *arena)
{
    return db_is_null(rows, column)
               ? TEXT_NONE
               : arena_copy(arena, db_get_text(rows, column));
}

/* Columns 0 and 4 of either kind of row. */
static enum status head_take(struct db_rows *rows, char *id_out,
                             enum undelivered_status *status, struct diag *diag)
{
    struct text id = db_get_text(rows, 0);

    if (id.len != UUID_TEXT_LEN)
        return diag_set(diag, STATUS_PERMANENT,
                        "an undelivered message's id '" TEXT_FORMAT
                        "' is no UUID",
                        TEXT_ARGS(id));
    memcpy(id_out, id.data, UUID_TEXT_LEN);
    id_out[UUID_TEXT_LEN] = '\0';
    if (!status_parse(db_get_text(rows, 4), status))
        return diag_set(diag, STATUS_PERMANENT,
                        "undelivered message %s has an unknown status", id_out);
    return STATUS_OK;
}

static enum status row_take(struct db_rows *rows, struct arena *arena,
                            struct undelivered_row *row, struct diag *diag)
{
    struct text copy = db_is_null(rows, 7) ? TEXT_NONE : db_get_text(rows, 7);
    enum status status;

    *row = (struct undelivered_row){.has_copy = copy.len > 0};
    status = head_take(rows, row->id, &row->status, diag);
    if (status != STATUS_OK)
        return status;
    row->partition = (int)db_get_int64(rows, 2);
    row->key = arena_copy(arena, db_get_text(rows, 3));
    row->failure_count = failures_take(db_get_int64(rows, 5));
    row->unresolved = db_get_bool(rows, 6);
    row->reason = text_take(rows, 8, arena);
    row->holds = db_get_bool(rows, 9);
    if (row->has_copy)
        copy_take(copy, arena, row);
    row->message.position = db_get_int64(rows, 1);
    return STATUS_OK;
}

/* Whether a row lies behind one that is not due, or is one. A message without
 * keys is held by its like in its own partition only. */
static bool is_held(struct undelivered_keys *held,
                    const struct undelivered_row *row)
{
    if (row->unresolved) {
        held->blocked[row->partition] |= row->holds;
        return held->blocked[row->partition];
    }
    if (row->holds)
        undelivered_keys_hold(held, row->key, KEY_WAITS);
    return undelivered_keys_held(held, row->key) != KEY_FREE;
}

enum status undelivered_due(struct db *db, const struct catalog *catalog,
                            const char *consumer_id, const char *source,
                            const struct leases *leases, int64_t now_us,
                            size_t limit, size_t byte_limit,
                            struct arena *arena,
                            struct undelivered_row **rows_out, size_t *count,
                            bool *whole, bool *behind, struct diag *diag)
{
    const struct db_value params[] = {
        db_string(consumer_id), db_string(source), db_timestamp(now_us),
        db_integer((int64_t)limit), db_integers(leases->mine, leases->count)};
    struct db_sql sql = *catalog_sql(catalog, SQL_UNDELIVERED_DUE);
    struct undelivered_row *list = arena_alloc(
        arena, limit * sizeof(struct undelivered_row));
    struct undelivered_keys held;
    struct db_rows *rows;
    size_t bytes = 0, read = 0;
    bool more = false;
    enum status status;

    *count = 0;
    *rows_out = list;
    *behind = false;
    sql.large = true; /* each row has the copy of a payload */
    status = db_query(db, &sql, params, 5, &rows, diag);
    if (status != STATUS_OK)
        return status;
    undelivered_keys_init(&held, leases->partitions);
    while (read < limit && bytes < byte_limit &&
           (status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        struct undelivered_row *row = &list[*count];

        status = row_take(rows, arena, row, diag);
        if (status != STATUS_OK)
            break;
        read++;
        bytes += row->message.payload.len;
        if (is_held(&held, row))
            *behind = true;
        else
            (*count)++;
    }
    db_rows_close(rows);
    undelivered_keys_free(&held);
    *whole = read < limit && bytes < byte_limit;
    return status;
}

static enum status recorded_take(struct db_rows *rows, struct arena *arena,
                                 struct undelivered_recorded *row,
                                 struct diag *diag)
{
    *row = (struct undelivered_recorded){
        .position = db_get_int64(rows, 1),
        .partition = (int)db_get_int64(rows, 2),
        .key = arena_copy(arena, db_get_text(rows, 3)),
        .failure_count = failures_take(db_get_int64(rows, 5)),
        .unresolved = db_get_bool(rows, 6),
        .reason = text_take(rows, 7, arena),
        .next_retry_at = db_is_null(rows, 8) ? 0 : db_get_timestamp(rows, 8),
    };
    return head_take(rows, row->id, &row->status, diag);
}

/* Both statements give the same columns. */
static enum status recorded_read(struct db *db, const struct db_sql *sql,
                                 const struct db_value *params, size_t nparams,
                                 struct arena *arena,
                                 struct undelivered_recorded **rows_out,
                                 size_t *count, struct diag *diag)
{
    size_t capacity = 8;
    struct undelivered_recorded *list = arena_alloc(arena,
                                                    capacity * sizeof(*list));
    struct db_rows *rows;
    bool more = false;
    enum status status;

    *count = 0;
    status = db_query(db, sql, params, nparams, &rows, diag);
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        if (*count == capacity) {
            const struct undelivered_recorded *full = list;

            list = arena_alloc(arena, 2 * capacity * sizeof(*list));
            memcpy(list, full, capacity * sizeof(*list));
            capacity *= 2;
        }
        status = recorded_take(rows, arena, &list[*count], diag);
        if (status != STATUS_OK)
            break;
        (*count)++;
    }
    db_rows_close(rows);
    *rows_out = list;
    return status;
}

enum status undelivered_recorded(struct db *db, const struct catalog *catalog,
                                 const char *consumer_id, const char *source,
                                 int64_t after, int64_t upto,
                                 struct arena *arena,
                                 struct undelivered_recorded **rows,
                                 size_t *count, struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_integer(after), db_integer(upto)};

    return recorded_read(db, catalog_sql(catalog, SQL_UNDELIVERED_RECORDED),
                         params, 4, arena, rows, count, diag);
}

enum status undelivered_keyless(struct db *db, const struct catalog *catalog,
                                const char *consumer_id, const char *source,
                                const int64_t *positions, size_t npositions,
                                struct arena *arena,
                                struct undelivered_recorded **rows,
                                size_t *count, struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_integers(positions, npositions)};

    return recorded_read(db, catalog_sql(catalog, SQL_UNDELIVERED_KEYLESS),
                         params, 3, arena, rows, count, diag);
}

enum key_hold undelivered_hold(enum undelivered_status status)
{
    switch (status) {
    case UNDELIVERED_DEAD_LETTER:
        return KEY_FREE;
    case UNDELIVERED_DEAD_LETTER_KEY:
        return KEY_DEAD;
    case UNDELIVERED_FAILED:
    case UNDELIVERED_WAITING:
    case UNDELIVERED_HALTED:
        break;
    }
    return KEY_WAITS;
}

static enum status next_take(void *arg, struct db_rows *row, struct diag *diag)
{
    int64_t *next_us = arg;

    (void)diag;
    if (!db_is_null(row, 0))
        *next_us = db_get_timestamp(row, 0);
    return STATUS_OK;
}

enum status undelivered_next(struct db *db, const struct catalog *catalog,
                             const char *consumer_id, const char *source,
                             const struct leases *leases, int64_t *next_us,
                             struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id), db_string(source),
                                      db_integers(leases->mine, leases->count)};

    *next_us = INT64_MAX;
    return db_rows_each(db, catalog_sql(catalog, SQL_UNDELIVERED_NEXT), params,
                        3, next_take, next_us, diag);
}
