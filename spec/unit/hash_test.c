#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* N = 12 shows a signed hash or byte; a power of two would hide it. */
static void partitions_follow_the_reference_vectors(void **state)
{
    static const struct {
        const char *key;
        uint32_t hash;
        int of_12;
    } vectors[] = {
        {"caf\xC3\xA9-42", 965556174, 6},
        {"order-1", 729795949, 1},
        {"\xC3\x9Cn\xC3\xAF"
         "code",
         UINT32_C(3119013579), 3},
        {"\xE6\x97\xA5\xE6\x9C\xAC-7", UINT32_C(3902184377), 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct text key = text_of(vectors[i].key);

        assert_int_equal(hash_fnv1a32(key), vectors[i].hash);
        assert_int_equal(hash_partition(key, 12), vectors[i].of_12);
    }
}

static void hashes_follow_the_published_vectors(void **state)
{
    (void)state;
    assert_int_equal(hash_fnv1a32(TEXT_NONE), UINT32_C(0x811C9DC5));
    assert_int_equal(hash_fnv1a32(TEXT_LITERAL("a")), UINT32_C(0xE40C292C));
    assert_int_equal(hash_fnv1a32(TEXT_LITERAL("foobar")),
                     UINT32_C(0xBF9CF968));
    assert_true(hash_fnv1a64(TEXT_NONE) == UINT64_C(0xCBF29CE484222325));
    assert_true(hash_fnv1a64(TEXT_LITERAL("a")) ==
                UINT64_C(0xAF63DC4C8601EC8C));
    assert_true(hash_fnv1a64(TEXT_LITERAL("foobar")) ==
                UINT64_C(0x85944171F73967E8));
}

static void the_wide_hash_reads_bytes_as_unsigned(void **state)
{
    (void)state;
    assert_true(hash_fnv1a64(TEXT_LITERAL("caf\xC3\xA9-42")) ==
                UINT64_C(0xC6634A8C56E06A4E));
    assert_true(hash_fnv1a64(TEXT_LITERAL("\xE6\x97\xA5\xE6\x9C\xAC-7")) ==
                UINT64_C(0xDAA0CE2D25B47CD9));
}

static void every_partition_is_within_the_count(void **state)
{
    (void)state;
    for (int n = 1; n <= 257; n++) {
        for (int c = 0; c < 256; c++) {
            char byte = (char)c;
            int partition = hash_partition((struct text){&byte, 1}, n);

            assert_true(partition >= 0 && partition < n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_follow_the_reference_vectors),
        cmocka_unit_test(hashes_follow_the_published_vectors),
        cmocka_unit_test(the_wide_hash_reads_bytes_as_unsigned),
        cmocka_unit_test(every_partition_is_within_the_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
