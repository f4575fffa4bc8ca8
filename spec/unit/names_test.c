/* Names of tables: prefix, own names, and what is refused. */
#include "schema/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_up(void **state)
{
    struct names *names = malloc(sizeof(*names));

    names_default(names);
    *state = names;
    return 0;
}

static int tear_down(void **state)
{
    names_free(*state);
    free(*state);
    return 0;
}

static void assert_says(const struct diag *diag, const char *part)
{
    if (strstr(diag->message, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag->message, part);
}

static const char *filled(const struct names *names, const char *placeholder)
{
    for (size_t i = 0; names->fill[i].placeholder != NULL; i++)
        if (strcmp(names->fill[i].placeholder, placeholder) == 0)
            return names->fill[i].value;
    return NULL;
}

static void default_names_are_those_of_the_reference(void **state)
{
    const struct names *names = *state;

    assert_string_equal(names->table[TABLE_CONSUMERS], "CONSUMERS");
    assert_string_equal(filled(names, "event_store_table"), "EVENT_STORE");
    assert_null(names->fill[TABLE_COUNT].placeholder);
}

static void prefix_stands_before_every_table(void **state)
{
    struct names *names = *state;
    struct diag diag;

    assert_int_equal(names_prefix(names, "ACME_", &diag), STATUS_OK);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        assert_memory_equal(names->table[i], "ACME_", 5);
        assert_ptr_equal(names->fill[i].value, names->table[i]);
    }
    assert_string_equal(filled(names, "consumers_table"), "ACME_CONSUMERS");
}

static void prefix_too_long_for_the_longest_table_is_refused(void **state)
{
    struct diag diag;

    assert_int_equal(
        names_prefix(*state, "a_prefix_of_forty_characters_is_too_long", &diag),
        STATUS_CONFIG);
    assert_says(&diag, "schema.prefix");
    assert_says(&diag, "at most 63");
}

static void prefix_with_other_characters_is_refused(void **state)
{
    struct diag diag;
    const char *const bad[] = {"acme-", "acme.", "1acme_",
                               "a b",   "\"",    "\xc3\xa9"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(names_prefix(*state, bad[i], &diag), STATUS_CONFIG);
}

static void table_is_set_by_name_in_either_case_or_placeholder(void **state)
{
    struct names *names = *state;
    struct diag diag;

    assert_int_equal(names_set(names, "CONSUMERS", "a", &diag), STATUS_OK);
    assert_string_equal(names->table[TABLE_CONSUMERS], "a");
    assert_int_equal(names_set(names, "consumers", "b", &diag), STATUS_OK);
    assert_string_equal(names->table[TABLE_CONSUMERS], "b");
    assert_int_equal(names_set(names, "schema_version", "c", &diag), STATUS_OK);
    assert_string_equal(names->table[TABLE_SCHEMA_VERSION], "c");
    assert_string_equal(filled(names, "schema_version_table"), "c");
}

static void set_name_takes_the_prefix(void **state)
{
    struct names *names = *state;
    struct diag diag;

    assert_int_equal(names_prefix(names, "x_", &diag), STATUS_OK);
    assert_int_equal(names_set(names, "consumers", "readers", &diag),
                     STATUS_OK);
    assert_string_equal(names->table[TABLE_CONSUMERS], "x_readers");
}

static void unknown_table_names_the_nearest(void **state)
{
    struct diag diag;

    assert_int_equal(names_set(*state, "consumer", "x", &diag), STATUS_CONFIG);
    assert_says(&diag, "\"consumer\"");
    assert_says(&diag, "\"CONSUMERS\"");
}

static void refused_name_leaves_the_old_one(void **state)
{
    struct names *names = *state;
    struct diag diag;

    assert_int_equal(names_set(names, "consumers", "no;name", &diag),
                     STATUS_CONFIG);
    assert_says(&diag, "schema.tables.CONSUMERS");
    assert_int_equal(names_set(names, "consumers", "", &diag), STATUS_CONFIG);
    assert_string_equal(names->table[TABLE_CONSUMERS], "CONSUMERS");
}

static void word_of_sql_is_no_table_name(void **state)
{
    struct diag diag;

    assert_int_equal(names_set(*state, "consumers", "Order", &diag),
                     STATUS_CONFIG);
    assert_says(&diag, "word of SQL");
    assert_int_equal(names_aggregate(*state, "t", "table", NULL, &diag),
                     STATUS_CONFIG);
}

static void name_of_63_characters_passes_and_64_do_not(void **state)
{
    char name[TABLE_NAME_MAX + 2];
    struct diag diag;

    memset(name, 'n', sizeof(name));
    name[TABLE_NAME_MAX] = '\0';
    assert_int_equal(names_set(*state, "consumers", name, &diag), STATUS_OK);
    name[TABLE_NAME_MAX] = 'n';
    name[TABLE_NAME_MAX + 1] = '\0';
    assert_int_equal(names_set(*state, "consumers", name, &diag),
                     STATUS_CONFIG);
    assert_says(&diag, "64 characters");
}

static void two_tables_of_one_name_are_refused_whatever_their_case(void **state)
{
    struct names *names = *state;
    struct diag diag;

    assert_int_equal(names_check(names, &diag), STATUS_OK);
    assert_int_equal(names_set(names, "consumers", "event_store", &diag),
                     STATUS_OK);
    assert_int_equal(names_check(names, &diag), STATUS_CONFIG);
    assert_says(&diag, "EVENT_STORE");
    assert_says(&diag, "CONSUMERS");
}

static void own_tables_take_part_in_the_check(void **state)
{
    struct names *names = *state;
    struct diag diag;

    assert_int_equal(
        names_aggregate(names, "bank.Account", "ACCOUNTS", "SNAPS", &diag),
        STATUS_OK);
    assert_int_equal(names_check(names, &diag), STATUS_OK);
    assert_int_equal(
        names_aggregate(names, "bank.Loan", "LOANS", "accounts", &diag),
        STATUS_OK);
    assert_int_equal(names_check(names, &diag), STATUS_CONFIG);
    assert_says(&diag, "bank.Account");
    assert_says(&diag, "bank.Loan");
}

static void own_tables_take_no_prefix_and_follow_the_shared_ones(void **state)
{
    struct names *names = *state;
    struct diag diag;
    enum table_id like;

    assert_int_equal(names_prefix(names, "x_", &diag), STATUS_OK);
    assert_int_equal(names_aggregate(names, "t", "T_EVENTS", NULL, &diag),
                     STATUS_OK);
    assert_int_equal(names_tables(names), TABLE_COUNT + 2);
    assert_string_equal(names_table(names, TABLE_COUNT, &like), "T_EVENTS");
    assert_int_equal(like, TABLE_EVENT_STORE);
    assert_null(names_table(names, TABLE_COUNT + 1, &like));
    assert_string_equal(names_owner(names, TABLE_COUNT), "t");
    assert_null(names_owner(names, 0));
}

static void aggregate_type_gets_its_tables_once(void **state)
{
    struct diag diag;

    assert_int_equal(names_aggregate(*state, "t", "A", NULL, &diag), STATUS_OK);
    assert_int_equal(names_aggregate(*state, "t", "B", NULL, &diag),
                     STATUS_CONFIG);
    assert_says(&diag, "\"t\"");
}

static void identifier_is_letters_digits_and_underscore(void **state)
{
    const char *const good[] = {"a", "_", "A1_b", "order"};
    const char *const bad[] = {"", "1a", "a b", "a-b", "a.b", "a\"b", "\xff"};
    struct diag diag;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(names_identifier("field", good[i], &diag), STATUS_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(names_identifier("field", bad[i], &diag),
                         STATUS_CONFIG);
        assert_says(&diag, "field");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(default_names_are_those_of_the_reference),
        TEST(prefix_stands_before_every_table),
        TEST(prefix_too_long_for_the_longest_table_is_refused),
        TEST(prefix_with_other_characters_is_refused),
        TEST(table_is_set_by_name_in_either_case_or_placeholder),
        TEST(set_name_takes_the_prefix),
        TEST(unknown_table_names_the_nearest),
        TEST(refused_name_leaves_the_old_one),
        TEST(word_of_sql_is_no_table_name),
        TEST(name_of_63_characters_passes_and_64_do_not),
        TEST(two_tables_of_one_name_are_refused_whatever_their_case),
        TEST(own_tables_take_part_in_the_check),
        TEST(own_tables_take_no_prefix_and_follow_the_shared_ones),
        TEST(aggregate_type_gets_its_tables_once),
        TEST(identifier_is_letters_digits_and_underscore),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
