/*
 * Text -- byte slices, UTF-8 checks, suggestions.
 *
 * A slice never owns its bytes and need not end with NUL.
 */
#ifndef HOST_BASE_TEXT_H
#define HOST_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text {
    const char *data; /* NULL: no value (SQL NULL, JSON absent) */
    size_t len;
};

#define TEXT_NONE       ((struct text){NULL, 0})
#define TEXT_LITERAL(s) ((struct text){"" s, sizeof(s) - 1})
#define TEXT_FORMAT     "%.*s"
#define TEXT_ARGS(t)    (int)((t).len), ((t).data != NULL ? (t).data : "")

static inline struct text text_of(const char *string)
{
    return (struct text){string, string != NULL ? strlen(string) : 0};
}

static inline bool text_equal(struct text a, struct text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/** Order by bytes; a shorter text stands before one that it begins. */
static inline int text_compare(struct text a, struct text b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.data, b.data, len) : 0;

    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

/** Behind the last byte; NULL for TEXT_NONE, where nothing may be added. */
static inline const char *text_end(struct text t)
{
    return t.len > 0 ? t.data + t.len : t.data;
}

/** True if `t` is valid UTF-8 (no overlong forms, no surrogates). */
bool text_utf8_valid(struct text t);

/** Number of characters (code points) of valid UTF-8. */
size_t text_utf8_length(struct text t);

/** Longest prefix of at most `bytes` bytes that splits no character. */
size_t text_utf8_prefix(struct text t, size_t bytes);

/** Longest prefix of at most `chars` characters, in bytes. */
size_t text_utf8_prefix_chars(struct text t, size_t chars);

/**
 * Writes `t` to `out` (at most size - 1 bytes and a NUL) with every byte that
 * is not part of valid UTF-8, and every NUL, replaced by '?'.
 */
void text_clean(struct text t, char *out, size_t size);

/**
 * The candidate nearest to `word` by edit distance, or NULL when none is near
 * enough to be worth suggesting. `candidates` ends with NULL.
 */
const char *text_nearest(const char *word, const char *const *candidates);
/** The same, with at most `wrong` letters wrong, missing or too many. */
const char *text_nearest_within(const char *word, const char *const *candidates,
                                size_t wrong);

#endif
