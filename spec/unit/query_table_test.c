/* Query tables: named, created from fields, checked against what is there. */
#include "schema/query_table.h"
#include "schema/schema.h"
#include "temp_database.h"

struct fixture {
    struct temp_database temp;
    struct names names;
    struct query_table table;
    struct diag diag;
};

static const struct query_field FIELDS[] = {
    {.name = "iban", .kind = DB_KIND_TEXT, .unique = true},
    {.name = "balance", .kind = DB_KIND_INTEGER},
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    names_default(&f->names);
    f->table = (struct query_table){.projection = "account-summary",
                                    .name = "account_summary",
                                    .fields = FIELDS,
                                    .nfields = 2};
    temp_database_open(&f->temp);
    assert_ok(schema_prepare(f->temp.db,
                             &(struct schema_options){.names = &f->names,
                                                      .partitions = 16,
                                                      .create = true},
                             &f->diag),
              &f->diag);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    temp_database_close(&f->temp);
    names_free(&f->names);
    free(f);
    return 0;
}

static enum status prepare(struct fixture *f, bool create)
{
    enum status status = query_table_prepare(f->temp.db, &f->names, &f->table,
                                             create, &f->diag);

    assert_false(db_in_transaction(f->temp.db));
    return status;
}

static void run(struct fixture *f, const char *script)
{
    temp_database_run(f->temp.db, script);
}

/* Makes `ddl` instead of the declared table and expects it to be refused. */
static void assert_refused(struct fixture *f, const char *ddl)
{
    run(f, ddl);
    assert_int_equal(prepare(f, true), STATUS_CONFIG);
    assert_says(&f->diag, "account-summary");
    assert_says(&f->diag, "table \"account_summary\"");
}

static void assert_names_the_remedy(struct fixture *f)
{
    static const char *const steps[] = {
        "DROP TABLE account_summary;",
        "DELETE FROM CONSUMER_SKIPPED_MESSAGES WHERE",
        "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES WHERE",
        "DELETE FROM CONSUMER_CHECKPOINTS WHERE",
        "DELETE FROM READ_MODEL_EPOCHS WHERE",
        "DELETE FROM CONSUMERS WHERE"};
    const char *at = f->diag.message;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const char *found = strstr(at, steps[i]);

        if (found == NULL)
            fail_msg("no \"%s\" in its place in: %s", steps[i],
                     f->diag.message);
        else
            at = found;
    }
}

#define HEAD                                                                   \
    "CREATE TABLE account_summary (read_model_id TEXT NOT NULL PRIMARY KEY, "  \
    "message_id TEXT NOT NULL, state TEXT NOT NULL"
#define UNIQUE_IBAN "; CREATE UNIQUE INDEX u ON account_summary (iban)"

/* --- names ---------------------------------------------------------------- */

static void other_characters_become_an_underscore_each(void **state)
{
    char out[TABLE_NAME_MAX + 1];
    struct diag diag;

    (void)state;
    assert_ok(query_table_name("account-summary", out, sizeof(out), &diag),
              &diag);
    assert_string_equal(out, "account_summary");
    assert_ok(query_table_name("Kont\xc3\xb6 2.x", out, sizeof(out), &diag),
              &diag);
    assert_string_equal(out, "Kont__2_x");
}

static void projection_that_starts_with_a_digit_has_no_table_name(void **state)
{
    char out[TABLE_NAME_MAX + 1];
    struct diag diag;

    (void)state;
    assert_int_equal(query_table_name("2fast", out, sizeof(out), &diag),
                     STATUS_CONFIG);
    assert_says(&diag, "2fast");
    assert_int_equal(query_table_name("", out, sizeof(out), &diag),
                     STATUS_CONFIG);
}

static void table_name_of_64_characters_is_refused_not_cut(void **state)
{
    char name[TABLE_NAME_MAX + 2];
    char out[TABLE_NAME_MAX + 1];
    struct diag diag;

    (void)state;
    memset(name, 'n', sizeof(name));
    name[TABLE_NAME_MAX + 1] = '\0';
    assert_int_equal(query_table_name(name, out, sizeof(out), &diag),
                     STATUS_CONFIG);
    name[TABLE_NAME_MAX] = '\0';
    assert_ok(query_table_name(name, out, sizeof(out), &diag), &diag);
}

static enum status check_fields(struct fixture *f,
                                const struct query_field *fields,
                                size_t nfields)
{
    f->table.fields = fields;
    f->table.nfields = nfields;
    return query_table_check(&f->table, &f->diag);
}

static void field_with_the_name_of_a_host_column_is_refused(void **state)
{
    const char *const names[] = {"read_model_id", "message_id", "state",
                                 "STATE"};

    for (size_t i = 0; i < 4; i++) {
        struct query_field field = {.name = names[i], .kind = DB_KIND_TEXT};

        assert_int_equal(check_fields(*state, &field, 1), STATUS_CONFIG);
    }
}

static void fields_that_differ_only_in_case_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct query_field fields[] = {
        {.name = "iban", .kind = DB_KIND_TEXT},
        {.name = "IBAN", .kind = DB_KIND_TEXT},
    };

    assert_int_equal(check_fields(f, fields, 2), STATUS_CONFIG);
    assert_says(&f->diag, "\"iban\" and \"IBAN\"");
}

static void field_that_is_no_identifier_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct query_field field = {.name = "a b", .kind = DB_KIND_TEXT};

    assert_int_equal(check_fields(f, &field, 1), STATUS_CONFIG);
    assert_says(&f->diag, "\"a b\"");
}

/* idx_account_summary_ are 20 characters. */
static void index_name_above_63_characters_is_refused(void **state)
{
    struct fixture *f = *state;
    char name[45];
    struct query_field field = {.name = name, .kind = DB_KIND_TEXT};

    memset(name, 'f', sizeof(name));
    name[43] = '\0';
    assert_ok(check_fields(f, &field, 1), &f->diag);
    name[43] = 'f';
    name[44] = '\0';
    assert_int_equal(check_fields(f, &field, 1), STATUS_CONFIG);
    assert_says(&f->diag, "64 characters");
}

/* --- creating ------------------------------------------------------------- */

static void created_table_passes_its_own_check(void **state)
{
    struct fixture *f = *state;

    assert_ok(prepare(f, true), &f->diag);
    assert_ok(prepare(f, true), &f->diag);
    assert_ok(prepare(f, false), &f->diag);
    run(f, "INSERT INTO account_summary (read_model_id, message_id, state) "
           "VALUES ('A', '01890a5d-ac96-774b-bcce-b302099a8057', '{}'), ('a', "
           "'01890a5d-ac96-774b-bcce-b302099a8058', '{}')");
    assert_int_equal(
        temp_database_try(f->temp.db,
                          "UPDATE account_summary SET iban = 'same'", &f->diag),
        STATUS_UNIQUE);
    run(f, "UPDATE account_summary SET balance = 1");
}

static void created_table_has_an_index_per_field(void **state)
{
    struct fixture *f = *state;

    assert_ok(prepare(f, true), &f->diag);
    assert_int_equal(
        temp_database_number(f->temp.db,
                             "SELECT count(*) FROM sqlite_master WHERE name IN "
                             "('idx_account_summary_iban', "
                             "'idx_account_summary_balance')",
                             0),
        2);
}

static void every_kind_of_field_passes_its_own_check(void **state)
{
    struct fixture *f = *state;
    const struct query_field fields[] = {
        {.name = "a", .kind = DB_KIND_TEXT},
        {.name = "b", .kind = DB_KIND_INTEGER},
        {.name = "c", .kind = DB_KIND_DOUBLE},
        {.name = "d", .kind = DB_KIND_DECIMAL, .precision = 18, .scale = 2},
        {.name = "e", .kind = DB_KIND_BOOLEAN},
        {.name = "f", .kind = DB_KIND_DATE},
        {.name = "g", .kind = DB_KIND_TIME},
        {.name = "h", .kind = DB_KIND_TIMESTAMP},
        {.name = "i", .kind = DB_KIND_UUID, .unique = true},
        {.name = "order", .kind = DB_KIND_TEXT},
    };

    f->table.fields = fields;
    f->table.nfields = sizeof(fields) / sizeof(fields[0]);
    assert_ok(prepare(f, true), &f->diag);
    assert_ok(prepare(f, false), &f->diag);
}

static void
missing_table_is_an_error_with_its_ddl_when_creation_is_off(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(prepare(f, false), STATUS_CONFIG);
    assert_says(&f->diag, "account-summary");
    assert_says(&f->diag, "is missing");
    assert_says(&f->diag, "idx_account_summary_iban");
    assert_int_equal(
        temp_database_number(f->temp.db,
                             "SELECT count(*) FROM sqlite_master WHERE name = "
                             "'account_summary'",
                             -1),
        0);
}

/* --- checking ------------------------------------------------------------- */

static void table_without_the_key_is_no_query_table(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "CREATE TABLE account_summary (id TEXT, message_id TEXT,"
                      "state TEXT, iban TEXT, balance INTEGER)");
    assert_says(&f->diag, "read_model_id");
    assert_says(&f->diag, "no query table");
    assert_null(strstr(f->diag.message, "DROP TABLE"));
}

static void table_without_message_id_is_no_query_table(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "CREATE TABLE account_summary (read_model_id TEXT "
                      "PRIMARY KEY, state TEXT, iban TEXT, balance INTEGER)");
    assert_says(&f->diag, "message_id");
    assert_says(&f->diag, "no query table");
}

static void message_id_that_holds_no_uuid_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "CREATE TABLE account_summary (read_model_id TEXT "
                      "PRIMARY KEY, message_id INTEGER, state TEXT, iban TEXT,"
                      "balance INTEGER)" UNIQUE_IBAN);
    assert_says(&f->diag, "column \"message_id\"");
    assert_says(&f->diag, "it is INTEGER");
    assert_names_the_remedy(f);
}

static void key_that_is_not_unique_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "CREATE TABLE account_summary (read_model_id TEXT, "
                      "message_id TEXT, state TEXT, iban TEXT, balance "
                      "INTEGER)" UNIQUE_IBAN);
    assert_says(&f->diag, "column \"read_model_id\"");
    assert_names_the_remedy(f);
}

static void key_shared_with_another_column_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "CREATE TABLE account_summary (read_model_id TEXT, "
                      "message_id TEXT, state TEXT, iban TEXT, balance "
                      "INTEGER, PRIMARY KEY (read_model_id, "
                      "balance))" UNIQUE_IBAN);
    assert_says(&f->diag, "column \"read_model_id\"");
}

static void table_without_the_state_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "CREATE TABLE account_summary (read_model_id TEXT "
                      "PRIMARY KEY, message_id TEXT, iban TEXT, balance "
                      "INTEGER)" UNIQUE_IBAN);
    assert_says(&f->diag, "column \"state\"");
    assert_names_the_remedy(f);
}

static void missing_field_column_is_refused_with_its_declared_type(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, HEAD ", iban TEXT)" UNIQUE_IBAN);
    assert_says(&f->diag, "column \"balance\"");
    assert_says(&f->diag, "declared as INTEGER, missing");
    assert_names_the_remedy(f);
}

static void
field_column_of_another_type_is_refused_with_both_types(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, HEAD ", iban TEXT, balance BLOB)" UNIQUE_IBAN);
    assert_says(&f->diag, "column \"balance\"");
    assert_says(&f->diag, "declared as INTEGER");
    assert_says(&f->diag, "it is BLOB");
    assert_names_the_remedy(f);
}

static void missing_unique_index_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, HEAD ", iban TEXT, balance INTEGER);"
                           "CREATE UNIQUE INDEX two ON account_summary (iban, "
                           "balance)");
    assert_says(&f->diag, "column \"iban\"");
    assert_says(&f->diag, "declared unique");
    assert_says(&f->diag, "no unique index of its own");
    assert_names_the_remedy(f);
}

static void surplus_unique_index_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, HEAD ", iban TEXT, balance INTEGER UNIQUE)" UNIQUE_IBAN);
    assert_says(&f->diag, "column \"balance\"");
    assert_says(&f->diag, "declared not unique");
    assert_names_the_remedy(f);
}

static void remedy_uses_the_configured_table_names(void **state)
{
    struct fixture *f = *state;

    assert_ok(names_prefix(&f->names, "acme_", &f->diag), &f->diag);
    assert_refused(f, HEAD ", iban TEXT)" UNIQUE_IBAN);
    assert_says(&f->diag, "DELETE FROM acme_CONSUMER_CHECKPOINTS WHERE");
}

static void more_columns_and_missing_plain_indexes_are_fine(void **state)
{
    struct fixture *f = *state;

    run(f, HEAD ", iban TEXT, balance INTEGER, note TEXT)" UNIQUE_IBAN);
    assert_ok(prepare(f, false), &f->diag);
}

static void refused_table_keeps_its_rows(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE account_summary (x INTEGER);"
           "INSERT INTO account_summary VALUES (1)");
    assert_int_equal(prepare(f, true), STATUS_CONFIG);
    assert_int_equal(
        temp_database_number(f->temp.db, "SELECT x FROM account_summary", -1),
        1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(other_characters_become_an_underscore_each),
        TEST(projection_that_starts_with_a_digit_has_no_table_name),
        TEST(table_name_of_64_characters_is_refused_not_cut),
        TEST(field_with_the_name_of_a_host_column_is_refused),
        TEST(fields_that_differ_only_in_case_are_refused),
        TEST(field_that_is_no_identifier_is_refused),
        TEST(index_name_above_63_characters_is_refused),
        TEST(created_table_passes_its_own_check),
        TEST(created_table_has_an_index_per_field),
        TEST(every_kind_of_field_passes_its_own_check),
        TEST(missing_table_is_an_error_with_its_ddl_when_creation_is_off),
        TEST(table_without_the_key_is_no_query_table),
        TEST(table_without_message_id_is_no_query_table),
        TEST(message_id_that_holds_no_uuid_is_refused),
        TEST(key_that_is_not_unique_is_refused),
        TEST(key_shared_with_another_column_is_refused),
        TEST(table_without_the_state_is_refused),
        TEST(missing_field_column_is_refused_with_its_declared_type),
        TEST(field_column_of_another_type_is_refused_with_both_types),
        TEST(missing_unique_index_is_refused),
        TEST(surplus_unique_index_is_refused),
        TEST(remedy_uses_the_configured_table_names),
        TEST(more_columns_and_missing_plain_indexes_are_fine),
        TEST(refused_table_keeps_its_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
