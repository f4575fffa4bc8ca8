/*
 * JSON members -- one member of a JSON object, its key and its value, as C
 * writes it. *first is that of json_write_key. A value that is not there is
 * null; whoever leaves such a member out asks before.
 */
#ifndef HOST_BASE_JSON_MEMBER_H
#define HOST_BASE_JSON_MEMBER_H

#include "base/buffer.h"
#include "base/text.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stdint.h>

/** A string of valid UTF-8; null when its data is NULL. */
void json_member_text(struct buffer *out, bool *first, const char *key,
                      struct text value);
void json_member_string(struct buffer *out, bool *first, const char *key,
                        const char *value);

void json_member_int64(struct buffer *out, bool *first, const char *key,
                       int64_t value);
/** Null when `known` is false. */
void json_member_int64_if(struct buffer *out, bool *first, const char *key,
                          bool known, int64_t value);
void json_member_bool(struct buffer *out, bool *first, const char *key,
                      bool value);

/** As text of clock_format. */
void json_member_time(struct buffer *out, bool *first, const char *key,
                      int64_t time_us);
/** Null when it is 0. */
void json_member_time_or_null(struct buffer *out, bool *first, const char *key,
                              int64_t time_us);

/** Null when `id` is NULL. */
void json_member_id(struct buffer *out, bool *first, const char *key,
                    const struct uuid *id);

/** `json` byte for byte, which the caller knows to be JSON; null when its data
 * is NULL. */
void json_member_raw(struct buffer *out, bool *first, const char *key,
                     struct text json);

/** The same for text that somebody may have written by hand: what is no JSON
 * becomes a string. */
void json_member_document(struct buffer *out, bool *first, const char *key,
                          struct text json);

#endif
