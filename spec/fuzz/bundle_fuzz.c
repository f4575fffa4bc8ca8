/*
 * The reader of source bundles under libFuzzer: whatever the bytes are, they
 * give a sealed set or are refused; a set that is written again is of the same
 * version, and its lists, which turn round each time, are the same the time
 * after.
 */
#include "script/source_bundle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct source_set *set)
{
    char version[DIGEST_LEN + 1];
    const char *chunk;
    struct text source;
    size_t count;

    if (!source_set_is_sealed(set))
        abort();
    for (size_t n = 0; source_set_declaring(set, n, &chunk, &source); n++)
        if (!text_equal(source_set_text(set, chunk), source))
            abort();
    for (size_t n = 0; source_set_late(set, n, &chunk, &source); n++)
        if (source_set_text(set, chunk).data == NULL)
            abort();
    (void)source_set_files(set, &count);
    source_set_version(set, version);
}

static struct source_set *again(const struct source_set *set,
                                struct buffer *bytes)
{
    struct source_set *copy;
    struct diag diag;

    source_bundle_write(set, bytes);
    if (source_bundle_read(buffer_text(bytes), &copy, &diag) != STATUS_OK)
        abort();
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text bytes = {(const char *)data, size};
    struct buffer first = BUFFER_EMPTY, second = BUFFER_EMPTY;
    struct buffer third = BUFFER_EMPTY;
    char one[DIGEST_LEN + 1], other[DIGEST_LEN + 1];
    struct source_set *set, *copy, *back;
    struct diag diag;
    enum status status = source_bundle_read(bytes, &set, &diag);

    if (status == STATUS_INVALID)
        return 0;
    if (status != STATUS_OK)
        abort();
    use(set);
    copy = again(set, &first);
    back = again(copy, &second);
    source_bundle_write(back, &third);
    source_set_version(set, one);
    source_set_version(copy, other);
    if (strcmp(one, other) != 0 ||
        !text_equal(buffer_text(&first), buffer_text(&third)))
        abort();
    source_set_free(set);
    source_set_free(copy);
    source_set_free(back);
    buffer_free(&first);
    buffer_free(&second);
    buffer_free(&third);
    return 0;
}
