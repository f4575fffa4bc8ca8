/*
 * Values -- what goes into a statement as a parameter. Parameters are always
 * bound; no value is ever pasted into SQL text.
 */
#ifndef HOST_DB_VALUE_H
#define HOST_DB_VALUE_H

#include "base/text.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stdint.h>

enum db_type {
    DB_NULL,
    DB_INT64,
    DB_DOUBLE,
    DB_BOOL,
    DB_TEXT, /* valid UTF-8 without NUL */
    DB_BYTES,
    DB_DECIMAL,   /* text: [-]digits[.digits], with the column's scale */
    DB_TIMESTAMP, /* int64 microseconds since 1970, UTC */
    DB_UUID,
    DB_INT64_ARRAY, /* parameters only */
    DB_TEXT_ARRAY,  /* parameters only */
};

/** Borrowed: everything pointed to must live until the statement has run. */
struct db_value {
    enum db_type type;
    union {
        int64_t integer; /* INT64, TIMESTAMP */
        double number;
        bool boolean;
        struct text text; /* DECIMAL, TEXT, BYTES */
        struct uuid uuid;
        struct {
            const int64_t *items;
            size_t count;
        } integers;
        struct {
            const struct text *items;
            size_t count;
        } texts;
    } as;
};

static inline struct db_value db_null(void)
{
    return (struct db_value){.type = DB_NULL};
}

static inline struct db_value db_integer(int64_t v)
{
    return (struct db_value){.type = DB_INT64, .as.integer = v};
}

static inline struct db_value db_number(double v)
{
    return (struct db_value){.type = DB_DOUBLE, .as.number = v};
}

static inline struct db_value db_boolean(bool v)
{
    return (struct db_value){.type = DB_BOOL, .as.boolean = v};
}

/** NULL when t.data is NULL. */
static inline struct db_value db_text_value(struct text t)
{
    return t.data == NULL ? db_null()
                          : (struct db_value){.type = DB_TEXT, .as.text = t};
}

static inline struct db_value db_string(const char *s)
{
    return db_text_value(text_of(s));
}

static inline struct db_value db_decimal(struct text t)
{
    return (struct db_value){.type = DB_DECIMAL, .as.text = t};
}

static inline struct db_value db_bytes(struct text t)
{
    return (struct db_value){.type = DB_BYTES, .as.text = t};
}

static inline struct db_value db_timestamp(int64_t us)
{
    return (struct db_value){.type = DB_TIMESTAMP, .as.integer = us};
}

static inline struct db_value db_uuid(struct uuid v)
{
    return (struct db_value){.type = DB_UUID, .as.uuid = v};
}

static inline struct db_value db_integers(const int64_t *items, size_t count)
{
    return (struct db_value){.type = DB_INT64_ARRAY,
                             .as.integers = {items, count}};
}

static inline struct db_value db_texts(const struct text *items, size_t count)
{
    return (struct db_value){.type = DB_TEXT_ARRAY, .as.texts = {items, count}};
}

#endif
