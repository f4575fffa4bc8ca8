/*
 * Bare, PostgreSQL -- connection, statements and arrays with libpq. Every
 * statement waits for its answer, as a plain loop does.
 */
#ifndef BENCH_BARE_POSTGRES_H
#define BENCH_BARE_POSTGRES_H

#include "bare.h"

#include <endian.h>
#include <libpq-fe.h>

enum bare_oid { OID_INT8 = 20, OID_TEXT = 25, OID_UUID = 2950 };

/* A page holds the columns that the handlers use. The prepared statement finds
 * the checkpoints by the name of their consumer. */
#define BARE_PAGE                                                              \
    "SELECT global_position, aggregate_id, event_type, occurred_at::text,"     \
    " payload FROM event_store WHERE global_position > $1::bigint"             \
    " ORDER BY global_position LIMIT 500"
#define BARE_CHECKPOINT_READ                                                   \
    "SELECT position FROM consumer_checkpoints WHERE consumer_id ="            \
    " (SELECT id FROM consumers WHERE consumer_name = $1::text)"               \
    " AND source_name = 'event-store' ORDER BY partition_no FOR UPDATE"
#define BARE_CHECKPOINT_MOVE                                                   \
    "UPDATE consumer_checkpoints SET position = $2::bigint"                    \
    " WHERE consumer_id ="                                                     \
    " (SELECT id FROM consumers WHERE consumer_name = $1::text)"               \
    " AND source_name = 'event-store'"

static inline PGresult *bare_need(PGconn *db, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        bare_die("query", PQerrorMessage(db));
    return result;
}

static inline void bare_do(PGconn *db, const char *sql)
{
    PQclear(bare_need(db, PQexec(db, sql)));
}

static inline PGconn *bare_open(const char *url)
{
    PGconn *db = PQconnectdb(url);

    if (PQstatus(db) != CONNECTION_OK)
        bare_die(url, PQerrorMessage(db));
    bare_do(db, "SET timezone = 'UTC'");
    return db;
}

static inline void bare_prepare(PGconn *db, const char *name, const char *sql)
{
    PQclear(bare_need(db, PQprepare(db, name, sql, 0, NULL)));
}

/* Parameters of one statement, all in binary form. */
struct bare_params {
    const char *values[12];
    int sizes[12];
    int64_t numbers[12];
    int count;
};

static inline void bare_text_param(struct bare_params *params, const char *text)
{
    params->values[params->count] = text;
    params->sizes[params->count++] = (int)strlen(text);
}

static inline void bare_int_param(struct bare_params *params, int64_t number)
{
    int64_t *place = &params->numbers[params->count];

    *place = (int64_t)htobe64((uint64_t)number);
    params->values[params->count] = (const char *)place;
    params->sizes[params->count++] = sizeof(*place);
}

/* Runs a prepared statement; results are binary. */
static inline PGresult *bare_run(PGconn *db, const char *name,
                                 const struct bare_params *params)
{
    static const int formats[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

    return bare_need(db, PQexecPrepared(db, name, params->count, params->values,
                                        params->sizes, formats, 1));
}

/* The same for a statement that must touch so many rows; -1: any number. */
static inline void bare_change(PGconn *db, const char *name,
                               const struct bare_params *params, int rows)
{
    PGresult *result = bare_run(db, name, params);

    if (rows >= 0 && atoi(PQcmdTuples(result)) != rows)
        bare_die(name, "rows were changed by another program");
    PQclear(result);
}

static inline int64_t bare_int(const PGresult *result, int row, int column)
{
    uint64_t number;

    memcpy(&number, PQgetvalue(result, row, column), sizeof(number));
    return (int64_t)be64toh(number);
}

static inline struct slice bare_column(const PGresult *result, int row,
                                       int column)
{
    return (struct slice){PQgetvalue(result, row, column),
                          PQgetlength(result, row, column)};
}

/* --- arrays -------------------------------------------------------------- */

struct bare_array {
    char *bytes;
    size_t size, capacity;
    uint32_t count;
};

static inline void bare_array_put(struct bare_array *array, const void *bytes,
                                  size_t size)
{
    if (array->size + size > array->capacity) {
        array->capacity = 2 * (array->size + size);
        array->bytes = realloc(array->bytes, array->capacity);
        if (array->bytes == NULL)
            bare_die("array", "out of memory");
    }
    if (size > 0)
        memcpy(array->bytes + array->size, bytes, size);
    array->size += size;
}

static inline void bare_array_start(struct bare_array *array, uint32_t oid)
{
    const uint32_t head[5] = {htobe32(1), 0, htobe32(oid), 0, htobe32(1)};

    array->size = 0;
    array->count = 0;
    bare_array_put(array, head, sizeof(head));
}

static inline void bare_array_add(struct bare_array *array, struct slice item)
{
    uint32_t size = htobe32((uint32_t)item.size);

    bare_array_put(array, &size, sizeof(size));
    bare_array_put(array, item.data, (size_t)item.size);
    array->count++;
}

static inline void bare_array_int(struct bare_array *array, int64_t number)
{
    uint64_t wire = htobe64((uint64_t)number);

    bare_array_add(array, (struct slice){(const char *)&wire, sizeof(wire)});
}

static inline void bare_array_param(struct bare_params *params,
                                    struct bare_array *array)
{
    uint32_t count = htobe32(array->count);

    memcpy(array->bytes + 12, &count, sizeof(count));
    params->values[params->count] = array->bytes;
    params->sizes[params->count++] = (int)array->size;
}

/* A UUID of the server's, as its 16 bytes. */
static inline void bare_uuid_bytes(const char *text, char out[16])
{
    int at = 0;

    for (int half = 0; at < 32; text++) {
        int digit = *text <= '9' ? *text - '0' : *text - 'a' + 10;

        if (*text == '-')
            continue;
        half = at % 2 == 0 ? digit : half << 4 | digit;
        out[at / 2] = (char)half;
        at++;
    }
}

/* --- pages --------------------------------------------------------------- */

static inline void bare_prepare_page(PGconn *db)
{
    bare_do(db, "UPDATE high_water_mark_store SET high_water_mark ="
                " (SELECT last_value FROM event_store_global_position)"
                " WHERE topic_name = 'event-store'");
    bare_prepare(db, "page", BARE_PAGE);
    bare_prepare(db, "lock", BARE_CHECKPOINT_READ);
    bare_prepare(db, "move", BARE_CHECKPOINT_MOVE);
}

/* Begins a transaction at the consumer's checkpoint and reads its page. */
static inline PGresult *bare_page(PGconn *db, const char *consumer)
{
    struct bare_params lock = {.count = 0}, page = {.count = 0};
    PGresult *result;
    int64_t lowest = INT64_MAX;

    bare_do(db, "BEGIN");
    bare_text_param(&lock, consumer);
    result = bare_run(db, "lock", &lock);
    if (PQntuples(result) == 0)
        bare_die(consumer, "has no checkpoints");
    for (int i = 0; i < PQntuples(result); i++) {
        int64_t position = PQgetisnull(result, i, 0) ? 0
                                                     : bare_int(result, i, 0);

        if (position < lowest)
            lowest = position;
    }
    PQclear(result);
    bare_int_param(&page, lowest);
    return bare_run(db, "page", &page);
}

static inline void bare_commit(PGconn *db, const char *consumer,
                               int64_t position)
{
    struct bare_params params = {.count = 0};

    bare_text_param(&params, consumer);
    bare_int_param(&params, position);
    bare_change(db, "move", &params, BARE_PARTITIONS);
    bare_do(db, "COMMIT");
}

#endif
