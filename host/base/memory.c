#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Nothing here may allocate, so the line is written without stdio. */
static _Noreturn void exhausted(void)
{
    static const char line[] =
        "moontide: out of memory; the open transaction is rolled back\n";
    ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);

    (void)written;
    abort();
}

void *mem_alloc(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);

    if (memory == NULL)
        exhausted();
    return memory;
}

void *mem_grow(void *old, size_t count, size_t size)
{
    size_t bytes;
    void *memory;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
        exhausted();
    memory = realloc(old, bytes > 0 ? bytes : 1);
    if (memory == NULL)
        exhausted();
    return memory;
}

char *mem_copy_text(const char *text, size_t len)
{
    char *copy;

    if (len >= PTRDIFF_MAX)
        exhausted();
    copy = mem_grow(NULL, len + 1, 1);
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void mem_free(void *memory)
{
    free(memory);
}
