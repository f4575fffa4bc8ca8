#include "db/postgres.h"

#include "base/clock.h"
#include "base/memory.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>

/* The server counts from 2000-01-01. */
#define EPOCH_2000 INT64_C(946684800000000)

#define BORROWED SIZE_MAX /* the value is the caller's own text */

static const struct {
    unsigned element;
    unsigned array;
    const char *name;
} elements_known[] = {
    {PG_INT8, PG_INT8_ARRAY, "bigint"},
    {PG_FLOAT8, PG_FLOAT8_ARRAY, "double precision"},
    {PG_BOOL, PG_BOOL_ARRAY, "boolean"},
    {PG_TEXT, PG_TEXT_ARRAY, "text"},
    {PG_BYTEA, PG_BYTEA_ARRAY, "bytea"},
    {PG_TIMESTAMPTZ, PG_TIMESTAMPTZ_ARRAY, "timestamptz"},
    {PG_UUID, PG_UUID_ARRAY, "uuid"},
};

static size_t known(unsigned element)
{
    size_t i = 0;

    while (elements_known[i].element != element)
        i++;
    return i;
}

const char *postgres_param_name(unsigned element)
{
    return elements_known[known(element)].name;
}

/* --- bytes --------------------------------------------------------------- */

static void put32(struct buffer *out, uint32_t value)
{
    uint32_t wire = htobe32(value);

    buffer_append(out, &wire, sizeof(wire));
}

static void put64(struct buffer *out, uint64_t value)
{
    uint64_t wire = htobe64(value);

    buffer_append(out, &wire, sizeof(wire));
}

static uint64_t double_bits(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static void set32(struct buffer *out, size_t at, uint32_t value)
{
    uint32_t wire = htobe32(value);

    memcpy(out->data + at, &wire, sizeof(wire));
}

/* --- checks -------------------------------------------------------------- */

static const char *text_fault(struct text text, enum db_origin origin)
{
    if (text.len > INT32_MAX / 2)
        return "is longer than the database takes";
    if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL)
        return "is text with a NUL byte in it";
    /* the host's own text was checked where it came in */
    if (origin != DB_HOST && text.len > 0 && !text_utf8_valid(text))
        return "is text that is not valid UTF-8";
    return NULL;
}

/* What is wrong with a value, or NULL. */
static const char *value_fault(const struct db_value *value,
                               enum db_origin origin)
{
    switch (value->type) {
    case DB_DOUBLE:
        return value->as.number != value->as.number ? "is not a number (NaN)"
                                                    : NULL;
    case DB_TIMESTAMP:
        return value->as.integer < CLOCK_MIN || value->as.integer > CLOCK_MAX
                   ? "is a time outside of the years 0 to 9999"
                   : NULL;
    case DB_TEXT:
    case DB_DECIMAL:
        return text_fault(value->as.text, origin);
    case DB_BYTES:
        return value->as.text.len > INT32_MAX / 2
                   ? "is longer than the database takes"
                   : NULL;
    case DB_TEXT_ARRAY:
        for (size_t i = 0; i < value->as.texts.count; i++) {
            const char *fault = text_fault(value->as.texts.items[i], DB_SCRIPT);

            if (fault != NULL)
                return fault;
        }
        return NULL;
    case DB_NULL:
    case DB_INT64:
    case DB_BOOL:
    case DB_UUID:
    case DB_INT64_ARRAY:
        break;
    }
    return NULL;
}

/* --- one value ----------------------------------------------------------- */

static void grow(struct postgres_params *params, size_t count)
{
    if (count > params->capacity) {
        params->capacity = count < 16 ? 16 : count;
        params->types = mem_grow(params->types, params->capacity,
                                 sizeof(*params->types));
        params->values = mem_grow(params->values, params->capacity,
                                  sizeof(*params->values));
        params->lengths = mem_grow(params->lengths, params->capacity,
                                   sizeof(*params->lengths));
        params->formats = mem_grow(params->formats, params->capacity,
                                   sizeof(*params->formats));
        params->offsets = mem_grow(params->offsets, params->capacity,
                                   sizeof(*params->offsets));
    }
    params->count = count;
    buffer_clear(&params->bytes);
    buffer_reserve(&params->bytes, 1);
}

void postgres_param_free(struct postgres_params *params)
{
    mem_free(params->types);
    mem_free(params->values);
    mem_free(params->lengths);
    mem_free(params->formats);
    mem_free(params->offsets);
    buffer_free(&params->bytes);
    *params = (struct postgres_params){.count = 0};
}

/* An element of the wire's form of its own type. */
static void put_value(struct buffer *out, const struct db_value *value)
{
    switch (value->type) {
    case DB_INT64:
        put64(out, (uint64_t)value->as.integer);
        break;
    case DB_DOUBLE:
        put64(out, double_bits(value->as.number));
        break;
    case DB_BOOL:
        buffer_append_char(out, value->as.boolean ? 1 : 0);
        break;
    case DB_TIMESTAMP:
        put64(out, (uint64_t)(value->as.integer - EPOCH_2000));
        break;
    case DB_UUID:
        buffer_append(out, value->as.uuid.bytes, sizeof(value->as.uuid.bytes));
        break;
    case DB_TEXT:
    case DB_DECIMAL:
    case DB_BYTES:
        buffer_append_text(out, value->as.text);
        break;
    case DB_NULL:
    case DB_INT64_ARRAY:
    case DB_TEXT_ARRAY:
        break;
    }
}

static void put_array_head(struct buffer *out, unsigned element, size_t count)
{
    put32(out, count > 0 ? 1 : 0); /* dimensions */
    put32(out, 1);                 /* there may be NULLs */
    put32(out, element);
    if (count == 0)
        return;
    put32(out, (uint32_t)count);
    put32(out, 1); /* the first index */
}

static void put_text_item(struct buffer *out, struct text item)
{
    if (item.data == NULL) {
        put32(out, UINT32_MAX);
        return;
    }
    put32(out, (uint32_t)item.len);
    buffer_append_text(out, item);
}

static void put_array(struct buffer *out, const struct db_value *value)
{
    if (value->type == DB_INT64_ARRAY) {
        put_array_head(out, PG_INT8, value->as.integers.count);
        for (size_t i = 0; i < value->as.integers.count; i++) {
            put32(out, 8);
            put64(out, (uint64_t)value->as.integers.items[i]);
        }
        return;
    }
    put_array_head(out, PG_TEXT, value->as.texts.count);
    for (size_t i = 0; i < value->as.texts.count; i++)
        put_text_item(out, value->as.texts.items[i]);
}

static unsigned type_of(enum db_type type)
{
    switch (type) {
    case DB_INT64:
        return PG_INT8;
    case DB_DOUBLE:
        return PG_FLOAT8;
    case DB_BOOL:
        return PG_BOOL;
    case DB_TEXT:
        return PG_TEXT;
    case DB_BYTES:
        return PG_BYTEA;
    case DB_DECIMAL:
        return PG_NUMERIC;
    case DB_TIMESTAMP:
        return PG_TIMESTAMPTZ;
    case DB_UUID:
        return PG_UUID;
    case DB_INT64_ARRAY:
        return PG_INT8_ARRAY;
    case DB_TEXT_ARRAY:
        return PG_TEXT_ARRAY;
    case DB_NULL:
        break;
    }
    return PG_UNKNOWN_TYPE;
}

/*
 * Types are told, so that a plan does not depend on what the server infers.
 * A script's text is the exception: it may stand for a date, a number or a
 * JSON document, which the column it meets decides.
 */
static void encode(struct postgres_params *params, size_t i,
                   const struct db_value *value, enum db_origin origin)
{
    struct buffer *out = &params->bytes;
    bool open = value->type == DB_TEXT && origin != DB_HOST;

    params->types[i] = open ? PG_UNKNOWN_TYPE : type_of(value->type);
    params->formats[i] = open || value->type == DB_DECIMAL ? 0 : 1;
    params->offsets[i] = out->len;
    if ((value->type == DB_TEXT || value->type == DB_BYTES) && !open) {
        params->values[i] = value->as.text.data != NULL ? value->as.text.data
                                                        : "";
        params->lengths[i] = (int)value->as.text.len;
        params->offsets[i] = BORROWED;
        return;
    }
    if (value->type == DB_INT64_ARRAY || value->type == DB_TEXT_ARRAY)
        put_array(out, value);
    else
        put_value(out, value);
    params->lengths[i] = (int)(out->len - params->offsets[i]);
    params->values[i] = value->type == DB_NULL ? NULL : "";
    buffer_append_char(out, '\0'); /* text is read up to it */
}

static void set_pointers(struct postgres_params *params)
{
    for (size_t i = 0; i < params->count; i++) {
        if (params->offsets[i] != BORROWED && params->values[i] != NULL)
            params->values[i] = params->bytes.data + params->offsets[i];
    }
}

enum status postgres_param_encode(struct postgres_params *params,
                                  const struct db_value *values, size_t count,
                                  enum db_origin origin, struct diag *diag)
{
    if (count > UINT16_MAX)
        return diag_set(diag, STATUS_PERMANENT,
                        "a statement takes at most %d parameters", UINT16_MAX);
    grow(params, count);
    for (size_t i = 0; i < count; i++) {
        const char *fault = value_fault(&values[i], origin);

        if (fault != NULL)
            return diag_set(diag, STATUS_PERMANENT, "parameter %zu %s", i + 1,
                            fault);
        encode(params, i, &values[i], origin);
    }
    set_pointers(params);
    return STATUS_OK;
}

/* --- rows as arrays ------------------------------------------------------ */

static bool is_integer(unsigned type)
{
    return type == PG_INT8 || type == PG_INT4 || type == PG_INT2;
}

unsigned postgres_param_element(const struct db_table *table,
                                const struct db_value *values, size_t nrows,
                                size_t column, unsigned target)
{
    enum db_type type = DB_NULL;

    for (size_t i = 0; i < nrows; i++) {
        enum db_type next = values[i * table->ncolumns + column].type;

        if (next == DB_NULL || next == type)
            continue;
        if (type != DB_NULL)
            return PG_TEXT;
        type = next;
    }
    if (type == DB_NULL || type == DB_DECIMAL)
        return PG_TEXT;
    /* the server would round it */
    if (type == DB_DOUBLE && is_integer(target))
        return PG_TEXT;
    return type_of(type);
}

static void put_hex(struct buffer *out, struct text bytes)
{
    buffer_append_string(out, "\\x");
    for (size_t i = 0; i < bytes.len; i++)
        buffer_printf(out, "%02x", (unsigned char)bytes.data[i]);
}

/* Any value as text that its column's type reads. */
static void put_as_text(struct buffer *out, const struct db_value *value)
{
    char time[CLOCK_TEXT_SIZE];
    char uuid[UUID_TEXT_LEN + 1];

    switch (value->type) {
    case DB_INT64:
        buffer_printf(out, "%" PRId64, value->as.integer);
        break;
    case DB_DOUBLE:
        buffer_printf(out, "%.17g", value->as.number);
        break;
    case DB_BOOL:
        buffer_append_char(out, value->as.boolean ? 't' : 'f');
        break;
    case DB_TIMESTAMP:
        clock_format(value->as.integer, time);
        buffer_append_string(out, time);
        break;
    case DB_UUID:
        uuid_format(&value->as.uuid, uuid);
        buffer_append_string(out, uuid);
        break;
    case DB_BYTES:
        put_hex(out, value->as.text);
        break;
    case DB_TEXT:
    case DB_DECIMAL:
        buffer_append_text(out, value->as.text);
        break;
    case DB_NULL:
    case DB_INT64_ARRAY:
    case DB_TEXT_ARRAY:
        break;
    }
}

static enum status put_column(struct buffer *out, const struct db_table *table,
                              const struct db_value *values, size_t nrows,
                              size_t column, unsigned element,
                              struct diag *diag)
{
    put_array_head(out, element, nrows);
    for (size_t i = 0; i < nrows; i++) {
        const struct db_value *value = &values[i * table->ncolumns + column];
        const char *fault = value_fault(value, table->origin);
        size_t at = out->len;

        if (fault != NULL)
            return diag_set(diag, STATUS_PERMANENT,
                            "table %s, column %s: a value %s", table->name,
                            table->columns[column].name, fault);
        put32(out, UINT32_MAX);
        if (value->type == DB_NULL)
            continue;
        if (element == PG_TEXT)
            put_as_text(out, value);
        else
            put_value(out, value);
        set32(out, at, (uint32_t)(out->len - at - 4));
    }
    return STATUS_OK;
}

enum status postgres_param_columns(struct postgres_params *params,
                                   const struct db_table *table,
                                   const struct db_value *values, size_t nrows,
                                   const unsigned *elements, struct diag *diag)
{
    grow(params, table->ncolumns);
    for (size_t i = 0; i < table->ncolumns; i++) {
        size_t at = params->bytes.len;
        enum status status = put_column(&params->bytes, table, values, nrows, i,
                                        elements[i], diag);

        if (status != STATUS_OK)
            return status;
        if (params->bytes.len > INT32_MAX / 2)
            return diag_set(diag, STATUS_PERMANENT,
                            "table %s: the rows of one statement are longer "
                            "than the database takes",
                            table->name);
        params->types[i] = elements_known[known(elements[i])].array;
        params->formats[i] = 1;
        params->offsets[i] = at;
        params->values[i] = "";
        params->lengths[i] = (int)(params->bytes.len - at);
    }
    set_pointers(params);
    return STATUS_OK;
}
