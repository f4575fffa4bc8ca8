/*
 * Any bytes through the placeholder scanner of every dialect. What is not a
 * parameter must come out as it went in.
 */
#include "db/placeholder.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static size_t count_signs(struct text sql)
{
    size_t count = 0;

    for (size_t i = 0; i < sql.len; i++)
        count += sql.data[i] == '?';
    return count;
}

static void rewrite(struct text sql, const char *dialect)
{
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;
    size_t count;
    enum status status = placeholder_rewrite(sql, dialect, &out, &count, &diag);

    require(status == STATUS_OK || status == STATUS_INVALID);
    require(count <= count_signs(sql));
    if (status == STATUS_OK && memmem(sql.data, sql.len, "??", 2) == NULL) {
        /* each parameter grows by its number only */
        require(out.len >= sql.len);
        require(out.len <= sql.len + count * 8);
        if (strcmp(dialect, "mysql") == 0)
            require(text_equal(buffer_text(&out), sql));
    }
    buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const dialects[] = {"sqlite", "postgres", "mysql"};

    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
        rewrite((struct text){(const char *)data, size}, dialects[i]);
    return 0;
}
