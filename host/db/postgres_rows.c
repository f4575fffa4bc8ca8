#include "db/postgres.h"

#include "base/clock.h"
#include "base/memory.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

/* The server counts from 2000-01-01. */
#define EPOCH_2000 INT64_C(946684800000000)

/*
 * A result in the client library's memory. Values are read where they lie;
 * `decoded` holds the bytes of a value that came as hexadecimal text.
 */
struct postgres_rows {
    struct db_rows base;
    PGresult *result;
    struct db_session *session; /* rows come one by one; NULL: all are here */
    uint64_t stream;            /* which of its streams they are */
    int row;                    /* -1 before the first */
    int nrows;
    struct buffer decoded;
};

static const struct postgres_rows *own(const struct db_rows *rows)
{
    return (const struct postgres_rows *)rows;
}

struct db_rows *postgres_rows_new(PGresult *result)
{
    struct postgres_rows *rows = mem_alloc(sizeof(*rows));

    rows->base.driver = &db_postgres_driver;
    rows->result = result;
    rows->row = -1;
    rows->nrows = PQntuples(result);
    return &rows->base;
}

struct db_rows *postgres_rows_stream(struct db_session *session)
{
    struct postgres_rows *rows = mem_alloc(sizeof(*rows));

    rows->base.driver = &db_postgres_driver;
    rows->session = session;
    rows->stream = session->streams;
    rows->row = -1;
    return &rows->base;
}

static bool flows(const struct postgres_rows *rows)
{
    return rows->session != NULL && rows->session->streaming &&
           rows->session->streams == rows->stream;
}

static enum status next_of_stream(struct postgres_rows *rows, bool *more,
                                  struct diag *diag)
{
    enum status status = STATUS_OK;

    PQclear(rows->result);
    rows->result = NULL;
    if (flows(rows))
        status = postgres_stream_next(rows->session, &rows->result, diag);
    *more = rows->result != NULL;
    rows->row = 0;
    rows->nrows = *more ? 1 : 0;
    return status;
}

enum status postgres_rows_next(struct db_rows *rows, bool *more,
                               struct diag *diag)
{
    struct postgres_rows *result = (struct postgres_rows *)rows;

    buffer_clear(&result->decoded);
    if (result->session != NULL)
        return next_of_stream(result, more, diag);
    if (result->row < result->nrows)
        result->row++;
    *more = result->row < result->nrows;
    return STATUS_OK;
}

void postgres_rows_close(struct db_rows *rows)
{
    struct postgres_rows *result = (struct postgres_rows *)rows;

    if (flows(result))
        postgres_stream_drain(result->session);
    PQclear(result->result);
    buffer_free(&result->decoded);
    mem_free(result);
}

size_t postgres_rows_columns(const struct db_rows *rows)
{
    return (size_t)PQnfields(own(rows)->result);
}

const char *postgres_rows_column_name(const struct db_rows *rows, size_t column)
{
    const char *name = PQfname(own(rows)->result, (int)column);

    return name != NULL ? name : "";
}

/* --- values as they lie -------------------------------------------------- */

struct cell {
    const char *data; /* NULL: SQL NULL, or no such cell */
    size_t len;
    unsigned type;
    int modifier; /* -1: no length or precision is declared */
    bool binary;
};

static struct cell cell_of(const struct db_rows *rows, size_t column)
{
    const struct postgres_rows *result = own(rows);
    int at = (int)column;
    struct cell cell = {.data = NULL};

    if (result->row < 0 || result->row >= result->nrows ||
        column >= (size_t)PQnfields(result->result) ||
        PQgetisnull(result->result, result->row, at))
        return cell;
    cell.data = PQgetvalue(result->result, result->row, at);
    cell.len = (size_t)PQgetlength(result->result, result->row, at);
    cell.type = PQftype(result->result, at);
    cell.modifier = PQfmod(result->result, at);
    cell.binary = PQfformat(result->result, at) == 1;
    return cell;
}

static int64_t wire_integer(struct cell cell)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (cell.len) {
    case 2:
        memcpy(&two, cell.data, sizeof(two));
        return (int16_t)be16toh(two);
    case 4:
        memcpy(&four, cell.data, sizeof(four));
        if (cell.type == PG_OID)
            return be32toh(four);
        return (int32_t)be32toh(four);
    default:
        memcpy(&eight, cell.data, sizeof(eight));
        return (int64_t)be64toh(eight);
    }
}

static double wire_double(struct cell cell)
{
    uint32_t four;
    uint64_t eight;
    float small;
    double number;

    if (cell.len == 4) {
        memcpy(&four, cell.data, sizeof(four));
        four = be32toh(four);
        memcpy(&small, &four, sizeof(small));
        return (double)small;
    }
    memcpy(&eight, cell.data, sizeof(eight));
    eight = be64toh(eight);
    memcpy(&number, &eight, sizeof(number));
    return number;
}

static int16_t wire_short(const char *at)
{
    uint16_t two;

    memcpy(&two, at, sizeof(two));
    return (int16_t)be16toh(two);
}

/* A numeric's count of digits, weight of the first, sign and scale, and then
 * its digits to base 10000; zeros at the end are left out. */
static bool whole_numeric(struct cell cell, int64_t *value)
{
    int64_t number = 0;
    int count, weight;
    bool negative;

    if (cell.len < 8 || wire_short(cell.data + 6) != 0)
        return false;
    count = wire_short(cell.data);
    weight = wire_short(cell.data + 2);
    negative = wire_short(cell.data + 4) != 0; /* or no number at all */
    if (wire_short(cell.data + 4) != 0 && wire_short(cell.data + 4) != 0x4000)
        return false;
    for (int i = 0; i <= weight; i++) {
        int digit = i < count ? wire_short(cell.data + 8 + 2 * i) : 0;

        if (__builtin_mul_overflow(number, 10000, &number) ||
            __builtin_sub_overflow(number, digit, &number))
            return false;
    }
    if (!negative && number == INT64_MIN)
        return false;
    *value = negative ? number : -number;
    return true;
}

/* A whole number without a point that fits in 64 bits: sum() of integers is
 * a numeric on this server and an integer elsewhere. */
static bool whole_number(struct cell cell, int64_t *value)
{
    char *end;

    if (cell.binary)
        return whole_numeric(cell, value);
    if (cell.len == 0 || cell.len > 20 ||
        memchr(cell.data, '.', cell.len) != NULL)
        return false;
    errno = 0;
    *value = strtoll(cell.data, &end, 10);
    return errno == 0 && end == cell.data + cell.len;
}

/* YYYY-MM-DD HH:MM:SS[.ffffff][+00]: ISO, in the session's zone, UTC. */
static bool text_time(struct cell cell, int64_t *time_us)
{
    char text[CLOCK_TEXT_SIZE + 8];
    size_t len = cell.len;

    if (len >= 3 && memcmp(cell.data + len - 3, "+00", 3) == 0)
        len -= 3;
    if (len < 19 || len > 26 || cell.data[10] != ' ')
        return false;
    memcpy(text, cell.data, len);
    text[10] = 'T';
    text[len] = 'Z';
    return clock_parse((struct text){text, len + 1}, time_us, NULL) ==
           STATUS_OK;
}

/* What an expression gives (avg, 0.5) is a number as elsewhere, when a double
 * holds all of its digits; a declared decimal stays text. */
static bool short_number(struct cell cell)
{
    return !cell.binary && cell.modifier == -1 && cell.len <= 16 &&
           strspn(cell.data, "-.0123456789") == cell.len;
}

/* --- types --------------------------------------------------------------- */

static enum db_type type_of(struct cell cell)
{
    int64_t number;

    if (cell.data == NULL)
        return DB_NULL;
    switch (cell.type) {
    case PG_INT2:
    case PG_INT4:
    case PG_INT8:
    case PG_OID:
        return DB_INT64;
    case PG_FLOAT4:
    case PG_FLOAT8:
        return DB_DOUBLE;
    case PG_NUMERIC:
        if (whole_number(cell, &number))
            return DB_INT64;
        return short_number(cell) ? DB_DOUBLE : DB_TEXT;
    case PG_BOOL:
        return DB_BOOL;
    case PG_BYTEA:
        return DB_BYTES;
    case PG_UUID:
        return DB_UUID;
    case PG_TIMESTAMP:
    case PG_TIMESTAMPTZ:
        return DB_TIMESTAMP;
    default:
        return DB_TEXT;
    }
}

enum db_type postgres_rows_column_type(const struct db_rows *rows,
                                       size_t column)
{
    return type_of(cell_of(rows, column));
}

int64_t postgres_rows_get_int64(struct db_rows *rows, size_t column)
{
    struct cell cell = cell_of(rows, column);
    int64_t number = 0;

    if (type_of(cell) != DB_INT64) {
        db_rows_mismatch(rows, column, "an integer");
        return 0;
    }
    if (cell.binary && cell.type != PG_NUMERIC)
        return wire_integer(cell);
    if (!whole_number(cell, &number))
        db_rows_mismatch(rows, column, "an integer");
    return number;
}

double postgres_rows_get_double(struct db_rows *rows, size_t column)
{
    struct cell cell = cell_of(rows, column);

    enum db_type type = type_of(cell);

    if (cell.data != NULL && type == DB_INT64)
        return (double)postgres_rows_get_int64(rows, column);
    if (cell.data != NULL && type == DB_DOUBLE)
        return cell.binary ? wire_double(cell) : strtod(cell.data, NULL);
    db_rows_mismatch(rows, column, "a number");
    return 0;
}

bool postgres_rows_get_bool(struct db_rows *rows, size_t column)
{
    struct cell cell = cell_of(rows, column);
    int64_t number = 2;

    if (cell.data != NULL && type_of(cell) == DB_BOOL)
        return cell.binary ? cell.data[0] != 0 : cell.data[0] == 't';
    if (type_of(cell) == DB_INT64)
        number = postgres_rows_get_int64(rows, column);
    if (number != 0 && number != 1)
        db_rows_mismatch(rows, column, "a boolean");
    return number == 1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* `\x` and two digits for each byte. Values decoded before may move, so room
 * for the whole row is made at once. */
static struct text decode_bytes(struct postgres_rows *rows, struct cell cell)
{
    size_t start = rows->decoded.len;

    if (start == 0) {
        size_t all = 1;

        for (int i = 0; i < PQnfields(rows->result); i++)
            all += (size_t)PQgetlength(rows->result, rows->row, i) + 1;
        buffer_reserve(&rows->decoded, all);
    }
    for (size_t i = 2; i + 1 < cell.len; i += 2)
        buffer_append_char(&rows->decoded, (char)(hex_digit(cell.data[i]) << 4 |
                                                  hex_digit(cell.data[i + 1])));
    buffer_append_char(&rows->decoded, '\0');
    return (struct text){rows->decoded.data + start,
                         rows->decoded.len - start - 1};
}

struct text postgres_rows_get_text(struct db_rows *rows, size_t column)
{
    struct cell cell = cell_of(rows, column);

    switch (type_of(cell)) {
    case DB_NULL:
        return TEXT_NONE;
    case DB_BYTES:
        if (!cell.binary)
            return decode_bytes((struct postgres_rows *)rows, cell);
        break;
    case DB_TEXT:
        /* a version number goes before the text of a jsonb */
        if (cell.binary && cell.type == PG_JSONB)
            return (struct text){cell.data + 1, cell.len - 1};
        if (!cell.binary || cell.type == PG_TEXT || cell.type == PG_VARCHAR ||
            cell.type == PG_BPCHAR || cell.type == PG_JSON ||
            cell.type == PG_NAME || cell.type == PG_UNKNOWN)
            break;
        db_rows_mismatch(rows, column, "text");
        return TEXT_NONE;
    default:
        db_rows_mismatch(rows, column, "text");
        return TEXT_NONE;
    }
    return (struct text){cell.data, cell.len};
}

int64_t postgres_rows_get_timestamp(struct db_rows *rows, size_t column)
{
    struct cell cell = cell_of(rows, column);
    int64_t time_us = 0;
    bool good = false;

    if (type_of(cell) == DB_TIMESTAMP && cell.binary) {
        /* infinity is the end of the range, and overflows */
        good = !__builtin_add_overflow(wire_integer(cell), EPOCH_2000,
                                       &time_us) &&
               time_us >= CLOCK_MIN && time_us <= CLOCK_MAX;
    } else if (type_of(cell) == DB_TIMESTAMP) {
        good = text_time(cell, &time_us);
    }
    if (good)
        return time_us;
    db_rows_mismatch(rows, column, "a time of the years 0 to 9999");
    return 0;
}

struct uuid postgres_rows_get_uuid(struct db_rows *rows, size_t column)
{
    struct cell cell = cell_of(rows, column);
    struct uuid uuid = {{0}};
    bool good = false;

    if (type_of(cell) == DB_UUID && cell.binary) {
        memcpy(uuid.bytes, cell.data, sizeof(uuid.bytes));
        good = true;
    } else if (cell.data != NULL && !cell.binary) {
        good = uuid_parse((struct text){cell.data, cell.len}, &uuid);
    }
    if (!good)
        db_rows_mismatch(rows, column, "a UUID");
    return uuid;
}
