#include "consumer/deadline.h"

#include <limits.h>
#include <string.h>

static const char *const status_words[] = {
    [DEADLINE_PENDING] = "PENDING",
    [DEADLINE_FAILED] = "FAILED",
    [DEADLINE_DEAD_LETTER] = "DEAD_LETTER",
};

const char *deadline_status_word(enum deadline_status status)
{
    return status_words[status];
}

bool deadline_status_parse(struct text word, enum deadline_status *status)
{
    for (size_t i = 0; i < sizeof(status_words) / sizeof(*status_words); i++) {
        if (!text_equal(word, text_of(status_words[i])))
            continue;
        *status = (enum deadline_status)i;
        return true;
    }
    return false;
}

enum status deadline_clock(struct db *db, const struct clock *clock,
                           int64_t *now_us, struct diag *diag)
{
    enum status status = db_clock(db, now_us, diag);

    if (status == STATUS_OK)
        *now_us = clock_shift(clock, *now_us);
    return status;
}

/* --- reading -------------------------------------------------------------- */

static struct text take_text(struct db_rows *rows, size_t column,
                             struct arena *arena)
{
    return db_is_null(rows, column)
               ? TEXT_NONE
               : arena_copy(arena, db_get_text(rows, column));
}

static enum status take_id(struct db_rows *rows, size_t column, struct uuid *id,
                           struct diag *diag)
{
    struct text text = db_get_text(rows, column);

    if (uuid_parse(text, id))
        return STATUS_OK;
    return diag_set(diag, STATUS_PERMANENT,
                    "a saga deadline's id '" TEXT_FORMAT "' is no UUID",
                    TEXT_ARGS(text));
}

static enum status take_row(struct db_rows *rows, struct arena *arena,
                            struct deadline *d, struct diag *diag)
{
    int64_t attempts;
    enum status status = take_id(rows, 0, &d->id, diag);

    if (status == STATUS_OK)
        status = take_id(rows, 1, &d->instance, diag);
    if (status != STATUS_OK)
        return status;
    d->saga_id = take_text(rows, 2, arena);
    d->name = take_text(rows, 3, arena);
    d->partition = (int)db_get_int64(rows, 4);
    d->due_at = db_get_timestamp(rows, 5);
    d->payload = take_text(rows, 7, arena);
    attempts = db_get_int64(rows, 6);
    /* whoever changes rows by hand may write any number */
    d->attempts = attempts < 0         ? 0
                  : attempts < INT_MAX ? (int)attempts
                                       : INT_MAX;
    d->message = (struct message){
        .id = d->id,
        .key = d->saga_id,
        .partition = d->partition,
        .type = d->name,
        .revision = 1,
        .payload = d->payload.data != NULL ? d->payload : TEXT_LITERAL("null"),
        .metadata = take_text(rows, 8, arena),
        .occurred_at = d->due_at,
        .sequence = MESSAGE_NO_SEQUENCE,
    };
    d->reason = take_text(rows, 9, arena);
    d->next_at = db_get_timestamp(rows, 10);
    return STATUS_OK;
}

enum status deadline_due(struct db *db, const struct catalog *catalog,
                         const char *saga_type, const struct leases *leases,
                         int64_t now_us, size_t limit, size_t byte_limit,
                         struct arena *arena, struct deadline **rows_out,
                         size_t *count, bool *whole, struct diag *diag)
{
    const struct db_value params[] = {
        db_string(saga_type), db_timestamp(now_us),
        db_integers(leases->mine, leases->count), db_integer((int64_t)limit)};
    struct db_sql sql = *catalog_sql(catalog, SQL_DEADLINE_DUE);
    struct deadline *list = arena_alloc(arena, limit * sizeof(*list));
    struct db_rows *rows;
    size_t bytes = 0;
    bool more = false;
    enum status status;

    *count = 0;
    *rows_out = list;
    sql.large = true; /* payloads */
    status = db_query(db, &sql, params, 4, &rows, diag);
    if (status != STATUS_OK)
        return status;
    while (*count < limit && bytes < byte_limit &&
           (status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        status = take_row(rows, arena, &list[*count], diag);
        if (status != STATUS_OK)
            break;
        bytes += list[*count].message.payload.len;
        (*count)++;
    }
    db_rows_close(rows);
    *whole = *count < limit && bytes < byte_limit;
    return status;
}

enum status deadline_next(struct db *db, const struct catalog *catalog,
                          const char *saga_type, const struct leases *leases,
                          int64_t *next_us, struct diag *diag)
{
    const struct db_value params[] = {db_string(saga_type),
                                      db_integers(leases->mine, leases->count)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(db, catalog_sql(catalog, SQL_DEADLINE_NEXT),
                                  params, 2, &rows, diag);

    *next_us = INT64_MAX;
    if (status != STATUS_OK)
        return status;
    status = db_next(rows, &more, diag);
    if (status == STATUS_OK && more)
        *next_us = db_get_timestamp(rows, 0);
    db_rows_close(rows);
    return status;
}

struct firsts {
    size_t count;
    deadline_first_fn fn;
    void *arg;
};

static enum status take_first(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct firsts *firsts = arg;
    int64_t place = db_get_int64(row, 0);

    (void)diag;
    if (!db_is_null(row, 1) && place >= 0 && place < (int64_t)firsts->count)
        firsts->fn(firsts->arg, (size_t)place, db_get_timestamp(row, 1));
    return STATUS_OK;
}

enum status deadline_firsts(struct db *db, const struct catalog *catalog,
                            const struct text *types, size_t count,
                            deadline_first_fn fn, void *arg, struct diag *diag)
{
    const struct db_value params[] = {db_texts(types, count)};
    struct firsts firsts = {count, fn, arg};

    return db_rows_each(db, catalog_sql(catalog, SQL_DEADLINE_FIRSTS), params,
                        1, take_first, &firsts, diag);
}

/* --- writing -------------------------------------------------------------- */

enum { COLUMN_COUNT = 5 };

static const struct db_column columns[COLUMN_COUNT] = {
    {"id", DB_UUID, DB_KEY},
    {"status", DB_TEXT, DB_SET},
    {"attempts", DB_INT64, DB_SET},
    {"next_retry_at", DB_TIMESTAMP, DB_SET},
    {"failure_reason", DB_TEXT, DB_SET},
};

enum status deadline_fail(struct db *db, const struct names *names,
                          const struct deadline_failed *rows, size_t count,
                          struct arena *arena, struct diag *diag)
{
    struct db_table *table = arena_alloc(arena, sizeof(*table));
    struct db_value *values = arena_alloc(arena, count * COLUMN_COUNT *
                                                     sizeof(*values));

    if (count == 0)
        return STATUS_OK;
    *table = (struct db_table){
        .name = names->table[TABLE_SAGA_DEADLINES],
        .columns = columns,
        .ncolumns = COLUMN_COUNT,
        .origin = DB_HOST,
    };
    for (size_t i = 0; i < count; i++) {
        const struct deadline_failed *row = &rows[i];
        struct db_value *v = values + i * COLUMN_COUNT;

        v[0] = db_uuid(row->deadline->id);
        v[1] = db_string(deadline_status_word(row->status));
        v[2] = db_integer(row->attempts);
        v[3] = row->status == DEADLINE_DEAD_LETTER ? db_null()
                                                   : db_timestamp(row->next_at);
        v[4] = row->failure != NULL ? db_string(row->failure->reason)
                                    : db_null();
    }
    return db_queue_bulk(db, DB_UPDATE, table, values, count, -1, diag);
}
