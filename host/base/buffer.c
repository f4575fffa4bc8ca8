#include "base/buffer.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define CAPACITY_MIN ((size_t)64)
#define READ_STEP    ((size_t)65536)

void buffer_reserve(struct buffer *buffer, size_t more)
{
    size_t need;
    size_t capacity = buffer->capacity;

    /* mem_grow ends the process for a size that cannot be. */
    if (__builtin_add_overflow(buffer->len, more, &need) ||
        __builtin_add_overflow(need, 1, &need))
        need = SIZE_MAX;
    if (need <= capacity)
        return;
    capacity = capacity < SIZE_MAX / 2 ? capacity * 2 : need;
    if (capacity < CAPACITY_MIN)
        capacity = CAPACITY_MIN;
    if (capacity < need)
        capacity = need;
    buffer->data = mem_grow(buffer->data, capacity, 1);
    buffer->capacity = capacity;
    buffer->data[buffer->len] = '\0';
}

void buffer_append_string(struct buffer *buffer, const char *string)
{
    buffer_append(buffer, string, strlen(string));
}

void buffer_vprintf(struct buffer *buffer, const char *format, va_list args)
{
    va_list again;
    size_t room;
    int len;

    buffer_reserve(buffer, CAPACITY_MIN);
    room = buffer->capacity - buffer->len;
    va_copy(again, args);
    len = vsnprintf(buffer->data + buffer->len, room, format, args);
    if (len >= 0 && (size_t)len >= room) {
        buffer_reserve(buffer, (size_t)len);
        room = buffer->capacity - buffer->len;
        len = vsnprintf(buffer->data + buffer->len, room, format, again);
    }
    va_end(again);
    if (len > 0)
        buffer->len += (size_t)len;
    buffer->data[buffer->len] = '\0';
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    buffer_vprintf(buffer, format, args);
    va_end(args);
}

void buffer_clear(struct buffer *buffer)
{
    buffer->len = 0;
    if (buffer->data != NULL)
        buffer->data[0] = '\0';
}

void buffer_free(struct buffer *buffer)
{
    mem_free(buffer->data);
    *buffer = BUFFER_EMPTY;
}

/* Reads to the end of `fd`; asks for one byte too many to notice the limit. */
static enum status read_all(struct buffer *buffer, int fd, const char *path,
                            size_t limit, struct diag *diag)
{
    size_t start = buffer->len;

    for (;;) {
        size_t left = limit - (buffer->len - start);
        size_t step = left < READ_STEP ? left + 1 : READ_STEP;
        ssize_t got;

        buffer_reserve(buffer, step);
        got = read(fd, buffer->data + buffer->len, step);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return diag_set(diag, STATUS_INVALID, "cannot read %s: %s", path,
                            strerror(errno));
        if (got == 0)
            return STATUS_OK;
        if ((size_t)got > left)
            return diag_set(diag, STATUS_INVALID,
                            "%s is larger than the %zu bytes allowed", path,
                            limit);
        buffer->len += (size_t)got;
    }
}

enum status buffer_read_file(struct buffer *buffer, const char *path,
                             size_t limit, struct diag *diag)
{
    size_t start = buffer->len;
    enum status status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return diag_set(diag, STATUS_INVALID, "cannot open %s: %s", path,
                        strerror(errno));
    status = read_all(buffer, fd, path, limit, diag);
    close(fd);
    if (status != STATUS_OK)
        buffer->len = start;
    if (buffer->data != NULL)
        buffer->data[buffer->len] = '\0';
    return status;
}
