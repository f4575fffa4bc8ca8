#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void digest_of_two(struct text a, struct text b,
                          char out[DIGEST_LEN + 1])
{
    struct digest digest;

    digest_begin(&digest);
    digest_text(&digest, a);
    digest_text(&digest, b);
    digest_end(&digest, out);
}

/* Computed by another implementation of BLAKE2b. */
static void a_digest_is_blake2b_over_lengths_and_bytes(void **state)
{
    struct digest digest;
    char out[DIGEST_LEN + 1];

    (void)state;
    digest_begin(&digest);
    digest_text(&digest, TEXT_LITERAL("ab"));
    digest_text(&digest, TEXT_NONE);
    digest_text(&digest, TEXT_LITERAL(""));
    digest_integer(&digest, 7);
    digest_end(&digest, out);
    assert_string_equal(out, "Ig32AokPIZPz0UHhm4SSckAy");
}

static void where_a_text_ends_makes_a_difference(void **state)
{
    char one[DIGEST_LEN + 1], other[DIGEST_LEN + 1];

    (void)state;
    digest_of_two(TEXT_LITERAL("ab"), TEXT_LITERAL("c"), one);
    digest_of_two(TEXT_LITERAL("a"), TEXT_LITERAL("bc"), other);
    assert_string_not_equal(one, other);
    digest_of_two(TEXT_LITERAL(""), TEXT_LITERAL("c"), one);
    digest_of_two(TEXT_NONE, TEXT_LITERAL("c"), other);
    assert_string_not_equal(one, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_digest_is_blake2b_over_lengths_and_bytes),
        cmocka_unit_test(where_a_text_ends_makes_a_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
