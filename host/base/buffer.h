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

void buffer_reserve(struct buffer *buffer, size_t more);
void buffer_append(struct buffer *buffer, const void *data, size_t len);
void buffer_append_text(struct buffer *buffer, struct text text);
void buffer_append_string(struct buffer *buffer, const char *string);
void buffer_append_char(struct buffer *buffer, char c);
void buffer_printf(struct buffer *buffer, const char *format, ...)
    PRINTF_LIKE(2, 3);
void buffer_vprintf(struct buffer *buffer, const char *format, va_list args)
    PRINTF_LIKE(2, 0);
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

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
