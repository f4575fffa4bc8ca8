/*
 * Buffer -- bytes that grow. The owner calls buffer_free; buffer_clear keeps
 * the memory for the next use. The content is always followed by a NUL that
 * does not count in `len`.
 */
#ifndef HOST_BASE_BUFFER_H
#define HOST_BASE_BUFFER_H

#include "base/status.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>

struct buffer {
    char *data;
    size_t len;
    size_t capacity;
};

#define BUFFER_EMPTY ((struct buffer){NULL, 0, 0})

void buffer_reserve(struct buffer *buffer, size_t more); /* and the NUL */
/* What is appended must not lie in the buffer itself. */
void buffer_append_string(struct buffer *buffer, const char *string);
void buffer_printf(struct buffer *buffer, const char *format, ...)
    PRINTF_LIKE(2, 3);
void buffer_vprintf(struct buffer *buffer, const char *format, va_list args)
    PRINTF_LIKE(2, 0);
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

static inline void buffer_append(struct buffer *buffer, const void *data,
                                 size_t len)
{
    if (buffer->capacity - buffer->len <= len)
        buffer_reserve(buffer, len);
    if (len > 0)
        memcpy(buffer->data + buffer->len, data, len);
    buffer->len += len;
    buffer->data[buffer->len] = '\0';
}

static inline void buffer_append_text(struct buffer *buffer, struct text text)
{
    buffer_append(buffer, text.data, text.len);
}

static inline void buffer_append_char(struct buffer *buffer, char c)
{
    if (buffer->capacity - buffer->len <= 1)
        buffer_reserve(buffer, 1);
    buffer->data[buffer->len++] = c;
    buffer->data[buffer->len] = '\0';
}

static inline struct text buffer_text(const struct buffer *buffer)
{
    return (struct text){buffer->data != NULL ? buffer->data : "", buffer->len};
}

/**
 * Appends a whole file of at most `limit` bytes. INVALID names path and why;
 * the buffer is as before then.
 */
enum status buffer_read_file(struct buffer *buffer, const char *path,
                             size_t limit, struct diag *diag) MUST_CHECK;

#endif
