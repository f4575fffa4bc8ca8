/* The schema: created, checked, seeded, guarded, upgraded, printed. */
#include "schema/schema.h"
#include "temp_database.h"

#include "db/catalog.h"
#include "db/shape.h"
#include "schema/columns.h"

#include <strings.h>
#include <sys/wait.h>

#define PARTITIONS 12

struct fixture {
    struct temp_database temp;
    struct names names;
    struct schema_options options;
    struct diag diag;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    names_default(&f->names);
    f->options = (struct schema_options){
        .names = &f->names, .partitions = PARTITIONS, .create = true};
    temp_database_open(&f->temp);
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

static void prepare(struct fixture *f)
{
    assert_ok(schema_prepare(f->temp.db, &f->options, &f->diag), &f->diag);
}

static void run(struct fixture *f, const char *script)
{
    temp_database_run(f->temp.db, script);
}

static int64_t number(struct fixture *f, const char *query)
{
    return temp_database_number(f->temp.db, query, INT64_MIN);
}

static int64_t table_count(struct fixture *f)
{
    return number(f, "SELECT count(*) FROM sqlite_master WHERE type = 'table'");
}

/* --- creating ------------------------------------------------------------ */

static bool is_wanted(enum table_id id, const char *column)
{
    const char *const *wanted = columns_wanted(id);

    while (*wanted != NULL && strcmp(*wanted, column) != 0)
        wanted++;
    return *wanted != NULL;
}

static void every_table_is_created_with_exactly_the_wanted_columns(void **state)
{
    struct fixture *f = *state;
    struct arena arena = ARENA_EMPTY;
    size_t wanted;

    prepare(f);
    for (int id = 0; id < TABLE_COUNT; id++) {
        struct db_shape shape;
        bool exists = false;

        assert_ok(db_describe_table(f->temp.db, f->names.table[id], &arena,
                                    &shape, &exists, &f->diag),
                  &f->diag);
        assert_true(exists);
        for (size_t i = 0; i < shape.ncolumns; i++)
            if (!is_wanted(id, shape.columns[i].name))
                fail_msg("%s.%s is not in columns.c", f->names.table[id],
                         shape.columns[i].name);
        for (wanted = 0; columns_wanted(id)[wanted] != NULL;)
            wanted++;
        assert_int_equal(shape.ncolumns, wanted);
    }
    arena_free(&arena);
}

static void complete_schema_is_only_read(void **state)
{
    struct fixture *f = *state;
    struct db *reader;

    prepare(f);
    reader = temp_database_connect(&f->temp, true);
    assert_ok(schema_prepare(reader, &f->options, &f->diag), &f->diag);
    assert_ok(schema_verify(reader, &f->options, &f->diag), &f->diag);
    db_close(reader);
}

static void missing_table_is_created_again(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "DROP TABLE TOPIC_COMPACTION");
    prepare(f);
    assert_int_equal(number(f, "SELECT count(*) FROM TOPIC_COMPACTION"), 0);
}

static void
without_creation_a_missing_table_is_named_with_its_script(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "DROP TABLE CONSUMER_SKIPPED_MESSAGES");
    f->options.create = false;
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_CONFIG);
    assert_says(&f->diag, "table CONSUMER_SKIPPED_MESSAGES is missing");
    assert_says(&f->diag, "schema.create is off");
    assert_says(&f->diag, "schema/*-consumers.sql");
    assert_false(db_in_transaction(f->temp.db));
}

static void without_creation_an_empty_database_stays_empty(void **state)
{
    struct fixture *f = *state;

    f->options.create = false;
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_CONFIG);
    assert_int_equal(table_count(f), 0);
}

static void every_table_has_a_script_that_creates_it(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    f->options.create = false;
    for (int id = 0; id < TABLE_COUNT; id++) {
        char script[200];

        if (id == TABLE_CONSUMERS) /* the others reference it */
            continue;
        snprintf(script, sizeof(script), "DROP TABLE %s", f->names.table[id]);
        run(f, script);
        assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                         STATUS_CONFIG);
        assert_says(&f->diag, f->names.table[id]);
        assert_null(strstr(f->diag.message, "?"));
        f->options.create = true;
        prepare(f);
        f->options.create = false;
    }
}

static void prefix_and_own_tables_are_created(void **state)
{
    struct fixture *f = *state;

    assert_ok(names_prefix(&f->names, "acme_", &f->diag), &f->diag);
    assert_ok(names_aggregate(&f->names, "bank.Account", "ACCOUNTS", "SNAPS",
                              &f->diag),
              &f->diag);
    assert_ok(names_aggregate(&f->names, "bank.Loan", "LOANS", NULL, &f->diag),
              &f->diag);
    prepare(f);
    assert_int_equal(number(f, "SELECT count(*) FROM acme_CONSUMERS"), 0);
    assert_int_equal(number(f, "SELECT count(global_position) FROM ACCOUNTS"),
                     0);
    assert_int_equal(number(f, "SELECT count(snapshot_version) FROM SNAPS"), 0);
    assert_int_equal(number(f, "SELECT count(global_position) FROM LOANS"), 0);
    assert_int_equal(table_count(f), TABLE_COUNT + 3);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_master WHERE name "
                               "= 'idx_LOANS_partition'"),
                     1);
}

static void derived_name_above_63_characters_is_refused(void **state)
{
    struct fixture *f = *state;
    char name[61];

    memset(name, 'e', 60);
    name[60] = '\0';
    assert_ok(names_set(&f->names, "EVENT_STORE", name, &f->diag), &f->diag);
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_CONFIG);
    assert_says(&f->diag, "63");
    assert_int_equal(table_count(f), 0);
}

/* --- what the tables enforce --------------------------------------------- */

#define EVENT(id, type, aggregate, sequence, position)                         \
    "INSERT INTO EVENT_STORE (id, aggregate_id, aggregate_type, sequence_no, " \
    "event_type, payload, partition_key, global_position) VALUES ('" id        \
    "', '" aggregate "', '" type "', " sequence ", 't', '{}', 0, " position    \
    ");"

static void stream_is_type_and_id_compared_byte_by_byte(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, EVENT("e1", "a", "A-1", "0", "1") EVENT("e2", "b", "A-1", "0", "2")
               EVENT("e3", "a", "a-1", "0", "3")
                   EVENT("e4", "a", "A-1 ", "0", "4"));
    assert_int_equal(temp_database_try(f->temp.db,
                                       EVENT("e5", "a", "A-1", "0", "5"),
                                       &f->diag),
                     STATUS_UNIQUE);
}

static void event_id_and_position_are_unique(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, EVENT("e1", "a", "A-1", "0", "1"));
    assert_int_equal(temp_database_try(f->temp.db,
                                       EVENT("e1", "a", "A-1", "1", "2"),
                                       &f->diag),
                     STATUS_UNIQUE);
    assert_int_equal(temp_database_try(f->temp.db,
                                       EVENT("e2", "a", "A-1", "1", "1"),
                                       &f->diag),
                     STATUS_UNIQUE);
}

static void occurred_at_defaults_to_a_whole_timestamp(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, EVENT("e1", "a", "A-1", "0", "1"));
    assert_int_equal(
        number(f, "SELECT occurred_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-"
                  "[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]"
                  "[0-9][0-9][0-9]Z' FROM EVENT_STORE"),
        1);
}

static void key_of_256_characters_is_refused(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    assert_int_equal(
        temp_database_try(f->temp.db,
                          "INSERT INTO READ_MODEL_EPOCHS VALUES ('p', "
                          "printf('%.255c', 'k'), 0);"
                          "INSERT INTO READ_MODEL_EPOCHS VALUES ('p', "
                          "printf('%.256c', 'k'), 0)",
                          &f->diag),
        STATUS_PERMANENT);
    run(f, "INSERT INTO READ_MODEL_EPOCHS VALUES ('p', printf('%.255c', 'k'), "
           "0)");
}

static void consumer_with_checkpoints_cannot_be_deleted(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "INSERT INTO CONSUMERS (id, consumer_type, consumer_name, "
           "state_since) VALUES ('c', 'projection', 'p', 'now');"
           "INSERT INTO CONSUMER_CHECKPOINTS (consumer_id, source_name, "
           "partition_no) VALUES ('c', 'event-store', 0)");
    assert_int_not_equal(
        temp_database_try(f->temp.db, "DELETE FROM CONSUMERS", &f->diag),
        STATUS_OK);
    run(f, "DELETE FROM CONSUMER_CHECKPOINTS; DELETE FROM CONSUMERS");
}

static void snapshot_versions_of_one_sequence_stand_side_by_side(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "INSERT INTO AGGREGATE_SNAPSHOTS (id, aggregate_id, aggregate_type, "
           "sequence_no, snapshot_version, payload) VALUES "
           "('1', 'A', 't', 5, 1, '{}'), ('2', 'A', 't', 5, 2, '{}')");
    assert_int_equal(
        temp_database_try(
            f->temp.db,
            "INSERT INTO AGGREGATE_SNAPSHOTS (id, aggregate_id, "
            "aggregate_type, sequence_no, snapshot_version, payload) VALUES "
            "('3', 'A', 't', 5, 2, '{}')",
            &f->diag),
        STATUS_UNIQUE);
}

/* --- columns -------------------------------------------------------------- */

static void table_that_lacks_a_column_is_refused(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "ALTER TABLE SAGA_DEADLINES DROP COLUMN failure_reason");
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "table SAGA_DEADLINES has no column failure_reason");
    assert_int_equal(schema_verify(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "failure_reason");
}

static void foreign_table_of_the_same_name_is_refused_and_kept(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE consumers (id INTEGER, shop TEXT);"
           "INSERT INTO consumers VALUES (1, 'x')");
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "CONSUMERS");
    assert_int_equal(number(f, "SELECT count(*) FROM consumers"), 1);
    assert_int_equal(table_count(f), 1);
}

static void more_columns_than_wanted_are_fine(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "ALTER TABLE CONSUMERS ADD COLUMN note TEXT");
    prepare(f);
}

/* --- seed rows ------------------------------------------------------------ */

static void seed_rows_are_inserted_with_creation_off(void **state)
{
    struct fixture *f = *state;
    struct buffer scripts = BUFFER_EMPTY;

    assert_ok(
        schema_print(db_dialect(f->temp.db), &f->names, &scripts, &f->diag),
        &f->diag);
    run(f, scripts.data);
    buffer_free(&scripts);
    f->options.create = false;
    prepare(f);
    assert_int_equal(number(f, "SELECT partitions FROM PARTITION_METADATA"),
                     PARTITIONS);
    assert_int_equal(number(f, "SELECT version FROM MOONTIDE_SCHEMA"),
                     SCHEMA_VERSION);
    assert_int_equal(number(f, "SELECT val FROM EVENT_STORE_GLOBAL_POSITION"),
                     0);
    assert_int_equal(number(f, "SELECT val FROM EVENT_CAPTURE_GLOBAL_POSITION"),
                     0);
    assert_int_equal(number(f, "SELECT count(*) FROM HIGH_WATER_MARK_STORE "
                               "WHERE high_water_mark = 0"),
                     2);
}

static void deleted_seed_row_comes_back(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "DELETE FROM HIGH_WATER_MARK_STORE WHERE topic_name = "
           "'event-capture'; DELETE FROM EVENT_CAPTURE_GLOBAL_POSITION");
    prepare(f);
    assert_int_equal(number(f, "SELECT count(*) FROM HIGH_WATER_MARK_STORE"),
                     2);
    assert_int_equal(number(f, "SELECT val FROM EVENT_CAPTURE_GLOBAL_POSITION"),
                     0);
}

static void seed_row_that_is_there_is_not_overwritten(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "UPDATE EVENT_STORE_GLOBAL_POSITION SET val = 7;"
           "UPDATE HIGH_WATER_MARK_STORE SET high_water_mark = 5;"
           "DROP TABLE TOPIC_COMPACTION;"
           "DELETE FROM EVENT_CAPTURE_GLOBAL_POSITION");
    prepare(f);
    assert_int_equal(number(f, "SELECT val FROM EVENT_STORE_GLOBAL_POSITION"),
                     7);
    assert_int_equal(
        number(f, "SELECT min(high_water_mark) FROM HIGH_WATER_MARK_STORE"), 5);
}

static void counter_behind_its_rows_is_refused(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, EVENT("e1", "a", "A-1", "0", "9"));
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "EVENT_STORE_GLOBAL_POSITION stands at 0");
    assert_says(&f->diag, "EVENT_STORE holds position 9");
    run(f, "UPDATE EVENT_STORE_GLOBAL_POSITION SET val = 9");
    prepare(f);
}

static void lost_counter_is_not_seeded_behind_an_own_table(void **state)
{
    struct fixture *f = *state;

    assert_ok(names_aggregate(&f->names, "t", "OWN_EVENTS", NULL, &f->diag),
              &f->diag);
    prepare(f);
    run(f, "INSERT INTO OWN_EVENTS (id, aggregate_id, aggregate_type, "
           "sequence_no, event_type, payload, partition_key, global_position) "
           "VALUES ('e', 'a', 't', 0, 'x', '{}', 0, 3);"
           "DELETE FROM EVENT_STORE_GLOBAL_POSITION");
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "OWN_EVENTS holds position 3");
    assert_int_equal(
        number(f, "SELECT count(*) FROM EVENT_STORE_GLOBAL_POSITION"), 0);
}

/* --- guards --------------------------------------------------------------- */

static void other_partition_count_is_refused_naming_both(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    f->options.partitions = 16;
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "with 12 partitions");
    assert_says(&f->diag, "says 16");
    assert_says(&f->diag, "fixed when the schema is created");
    assert_int_equal(schema_verify(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_int_equal(number(f, "SELECT partitions FROM PARTITION_METADATA"),
                     PARTITIONS);
}

static void newer_schema_is_refused_by_everything(void **state)
{
    struct fixture *f = *state;
    struct buffer report = BUFFER_EMPTY;

    prepare(f);
    run(f, "UPDATE MOONTIDE_SCHEMA SET version = 1000;"
           "DROP TABLE SAGA_STEPS");
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "version 1000");
    assert_says(&f->diag, "newer");
    assert_int_equal(schema_verify(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_int_equal(schema_upgrade(f->temp.db, &f->options, &report, &f->diag),
                     STATUS_REFUSED);
    assert_int_equal(report.len, 0);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_master WHERE name "
                               "= 'SAGA_STEPS'"),
                     0);
    buffer_free(&report);
}

static void older_schema_is_refused_without_creation(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "UPDATE MOONTIDE_SCHEMA SET version = 0");
    f->options.create = false;
    assert_int_equal(schema_prepare(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "moontide schema upgrade");
    assert_int_equal(schema_verify(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "moontide schema upgrade");
}

static void older_schema_is_upgraded_with_creation(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "UPDATE MOONTIDE_SCHEMA SET version = 0");
    prepare(f);
    assert_int_equal(number(f, "SELECT version FROM MOONTIDE_SCHEMA WHERE "
                               "upgraded_at >= installed_at"),
                     SCHEMA_VERSION);
}

/* --- upgrade -------------------------------------------------------------- */

static void upgrade_says_what_it_did(void **state)
{
    struct fixture *f = *state;
    struct buffer report = BUFFER_EMPTY;

    prepare(f);
    run(f, "UPDATE MOONTIDE_SCHEMA SET version = 0; DROP TABLE SAGA_STEPS");
    f->options.create = false;
    assert_ok(schema_upgrade(f->temp.db, &f->options, &report, &f->diag),
              &f->diag);
    assert_non_null(strstr(report.data, "to version 1"));
    assert_non_null(strstr(report.data, "created table SAGA_STEPS"));
    assert_null(strstr(report.data, "created table CONSUMERS"));
    assert_null(strstr(report.data, "inserted the rows"));
    prepare(f);
    buffer_free(&report);
}

static void upgrade_with_nothing_to_do_says_so(void **state)
{
    struct fixture *f = *state;
    struct buffer report = BUFFER_EMPTY;

    prepare(f);
    assert_ok(schema_upgrade(f->temp.db, &f->options, &report, &f->diag),
              &f->diag);
    assert_non_null(strstr(report.data, "nothing to do"));
    buffer_free(&report);
}

/* --- verify --------------------------------------------------------------- */

static void verify_refuses_an_empty_database_and_leaves_it_empty(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(schema_verify(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "no tables of moontide");
    assert_int_equal(table_count(f), 0);
}

static void verify_names_a_missing_table(void **state)
{
    struct fixture *f = *state;

    prepare(f);
    run(f, "DROP TABLE PARTITION_MEMBERS");
    assert_int_equal(schema_verify(f->temp.db, &f->options, &f->diag),
                     STATUS_REFUSED);
    assert_says(&f->diag, "PARTITION_MEMBERS");
    assert_says(&f->diag, "schema/*-partition-ownership.sql");
}

/* --- several starts at once ----------------------------------------------- */

/* In a child: its status as the exit code, so the connection is its own. */
static int start_with(const struct temp_database *temp, int partitions)
{
    struct names names;
    struct schema_options options = {
        .names = &names, .partitions = partitions, .create = true};
    struct db_options to = {
        .url = temp->url, .busy_timeout = INT64_C(20000000), .create = true};
    struct db *db;
    struct diag diag;
    enum status status;

    names_default(&names);
    status = db_open(&to, &db, &diag);
    if (status != STATUS_OK)
        return -(int)status;
    status = schema_prepare(db, &options, &diag);
    db_close(db);
    return -(int)status;
}

static void starts_at_once_agree_on_one_partition_count(void **state)
{
    enum { STARTS = 6 };
    struct temp_database temp;
    pid_t children[STARTS];
    int64_t stored;

    (void)state;
    temp_database_reserve(&temp);
    for (int i = 0; i < STARTS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(start_with(&temp, i % 2 == 0 ? 12 : 16));
    }
    int exits[STARTS];

    for (int i = 0; i < STARTS; i++) {
        int status;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        exits[i] = WEXITSTATUS(status);
    }
    temp.db = temp_database_connect(&temp, false);
    stored = temp_database_number(
        temp.db, "SELECT partitions FROM PARTITION_METADATA", 0);
    assert_true(stored == 12 || stored == 16);
    for (int i = 0; i < STARTS; i++)
        assert_int_equal(exits[i], (i % 2 == 0 ? 12 : 16) == stored
                                       ? STATUS_OK
                                       : -STATUS_REFUSED);
    assert_int_equal(temp_database_number(
                         temp.db, "SELECT count(*) FROM MOONTIDE_SCHEMA", 0),
                     1);
    temp_database_close(&temp);
}

/* --- printing ------------------------------------------------------------- */

static void filled_print_has_no_placeholder_left(void **state)
{
    struct fixture *f = *state;
    struct buffer out = BUFFER_EMPTY;

    assert_ok(names_prefix(&f->names, "acme_", &f->diag), &f->diag);
    assert_ok(names_aggregate(&f->names, "t", "OWN_EVENTS", NULL, &f->diag),
              &f->diag);
    assert_ok(schema_print(db_dialect(f->temp.db), &f->names, &out, &f->diag),
              &f->diag);
    assert_null(strstr(out.data, "${"));
    assert_non_null(strstr(out.data, "EXISTS acme_EVENT_STORE ("));
    assert_non_null(strstr(out.data, "EXISTS OWN_EVENTS ("));
    buffer_free(&out);
}

static void raw_print_keeps_every_placeholder(void **state)
{
    struct fixture *f = *state;
    struct buffer out = BUFFER_EMPTY;

    assert_ok(schema_print(db_dialect(f->temp.db), NULL, &out, &f->diag),
              &f->diag);
    for (int id = 0; id < TABLE_COUNT; id++) {
        char part[100];

        snprintf(part, sizeof(part), "EXISTS ${%s} (", names_placeholder(id));
        assert_non_null(strstr(out.data, part));
    }
    buffer_free(&out);
}

static void print_of_an_unknown_dialect_is_refused(void **state)
{
    struct fixture *f = *state;
    struct buffer out = BUFFER_EMPTY;

    assert_int_equal(schema_print("oracle", NULL, &out, &f->diag),
                     STATUS_USAGE);
    assert_says(&f->diag, "oracle");
    buffer_free(&out);
}

/* Tools like Liquibase cut a script at every semicolon. */
static void scripts_have_no_semicolon_inside_a_comment(void **state)
{
    struct fixture *f = *state;
    size_t count = 0;
    const struct catalog_script *scripts = catalog_scripts(
        db_dialect(f->temp.db), &count);

    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        bool comment = false;

        for (size_t j = 0; j + 1 < scripts[i].text.len; j++) {
            const char *at = scripts[i].text.data + j;

            if (at[0] == '-' && at[1] == '-')
                comment = true;
            else if (*at == '\n')
                comment = false;
            assert_false(comment && *at == ';');
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_table_is_created_with_exactly_the_wanted_columns),
        TEST(complete_schema_is_only_read),
        TEST(missing_table_is_created_again),
        TEST(without_creation_a_missing_table_is_named_with_its_script),
        TEST(without_creation_an_empty_database_stays_empty),
        TEST(every_table_has_a_script_that_creates_it),
        TEST(prefix_and_own_tables_are_created),
        TEST(derived_name_above_63_characters_is_refused),
        TEST(stream_is_type_and_id_compared_byte_by_byte),
        TEST(event_id_and_position_are_unique),
        TEST(occurred_at_defaults_to_a_whole_timestamp),
        TEST(key_of_256_characters_is_refused),
        TEST(consumer_with_checkpoints_cannot_be_deleted),
        TEST(snapshot_versions_of_one_sequence_stand_side_by_side),
        TEST(table_that_lacks_a_column_is_refused),
        TEST(foreign_table_of_the_same_name_is_refused_and_kept),
        TEST(more_columns_than_wanted_are_fine),
        TEST(seed_rows_are_inserted_with_creation_off),
        TEST(deleted_seed_row_comes_back),
        TEST(seed_row_that_is_there_is_not_overwritten),
        TEST(counter_behind_its_rows_is_refused),
        TEST(lost_counter_is_not_seeded_behind_an_own_table),
        TEST(other_partition_count_is_refused_naming_both),
        TEST(newer_schema_is_refused_by_everything),
        TEST(older_schema_is_refused_without_creation),
        TEST(older_schema_is_upgraded_with_creation),
        TEST(upgrade_says_what_it_did),
        TEST(upgrade_with_nothing_to_do_says_so),
        TEST(verify_refuses_an_empty_database_and_leaves_it_empty),
        TEST(verify_names_a_missing_table),
        cmocka_unit_test(starts_at_once_agree_on_one_partition_count),
        TEST(filled_print_has_no_placeholder_left),
        TEST(raw_print_keeps_every_placeholder),
        TEST(print_of_an_unknown_dialect_is_refused),
        TEST(scripts_have_no_semicolon_inside_a_comment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
