#include "base/digest.h"

#include <assert.h>

void digest_begin(struct digest *digest)
{
    int failed = crypto_generichash_init(&digest->state, NULL, 0, DIGEST_BYTES);

    assert(failed == 0);
    (void)failed;
}

static void add(struct digest *digest, const void *data, size_t len)
{
    int failed = crypto_generichash_update(&digest->state, data, len);

    assert(failed == 0);
    (void)failed;
}

/* The same bytes on every machine. */
void digest_integer(struct digest *digest, int64_t value)
{
    unsigned char bytes[sizeof(value)];
    uint64_t rest = (uint64_t)value;

    for (size_t i = 0; i < sizeof(bytes); i++, rest >>= 8)
        bytes[i] = (unsigned char)(rest & 0xff);
    add(digest, bytes, sizeof(bytes));
}

void digest_text(struct digest *digest, struct text text)
{
    digest_integer(digest, text.data != NULL ? (int64_t)text.len : -1);
    if (text.data != NULL && text.len > 0)
        add(digest, text.data, text.len);
}

void digest_end(struct digest *digest, char out[DIGEST_LEN + 1])
{
    unsigned char bytes[DIGEST_BYTES];
    int failed = crypto_generichash_final(&digest->state, bytes, sizeof(bytes));

    assert(failed == 0);
    (void)failed;
    sodium_bin2base64(out, DIGEST_LEN + 1, bytes, sizeof(bytes),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}
