/*
 * JSON -- strict checking and reading of JSON text, and writing it, without
 * Lua. RFC 8259 with UTF-8 only; lone surrogates (raw or escaped) are refused,
 * because no path downstream could carry them; an escaped NUL is allowed.
 * The Lua side of JSON is script/json_codec.h.
 */
#ifndef HOST_BASE_JSON_H
#define HOST_BASE_JSON_H

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

#define JSON_DEPTH_MAX 512 /* nesting that is checked, decoded and encoded */

enum json_kind {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

/** One value inside checked text. */
struct json_value {
    enum json_kind kind;
    struct text raw; /* its exact bytes, quotes and brackets included */
};

/**
 * Checks that `t` is one JSON value with nothing but white space around it.
 * INVALID says why and at which byte offset (0-based, also in *offset, which
 * may be NULL).
 */
enum status json_check(struct text t, size_t *offset,
                       struct diag *diag) MUST_CHECK;

/** First value of checked text (white space skipped). */
struct json_value json_first(struct text t);

/** Walks the members of a checked object. */
struct json_members {
    const char *at;
    const char *end;
};
struct json_members json_members_of(struct json_value object);
/** False at the end. `key` is decoded into `scratch` when it has escapes. */
bool json_members_next(struct json_members *members, struct buffer *scratch,
                       struct text *key, struct json_value *value);

/** Decodes the string value `v` to `out` (appended). It may contain NUL. */
void json_decode_string(struct json_value v, struct buffer *out);

/** Integer value of a number without fraction or exponent; false if not. */
bool json_decode_int64(struct json_value v, int64_t *out);

/** Appends `t` (any valid UTF-8) as a JSON string with quotes. */
void json_write_string(struct buffer *out, struct text t);
/** Appends `"key":` (preceded by a comma unless *first; clears *first). */
void json_write_key(struct buffer *out, bool *first, const char *key);

#endif
