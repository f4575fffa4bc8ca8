/* The queue, bulk statements and lookups. */
#include "db_support.h"

static void queue(struct fixture *f, const char *text, int64_t value,
                  int64_t expect, int64_t tag)
{
    struct db_sql sql = sql_of(text);
    struct db_value param = db_integer(value);

    ok(f, db_queue(f->db, &sql, &param, 1, expect, tag, &f->diag));
}

static void insert_later(struct fixture *f, int64_t value, int64_t tag)
{
    queue(f, "INSERT INTO t VALUES (?1)", value, 1, tag);
}

static void begin_with_table(struct fixture *f)
{
    run(f, "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT");
    begin(f);
}

static void queued_statements_run_in_order(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE log (n INTEGER PRIMARY KEY AUTOINCREMENT, a INTEGER)"
           " STRICT");
    begin(f);
    for (int64_t i = 0; i < 200; i++)
        queue(f, "INSERT INTO log (a) VALUES (?1)", i, 1, i);
    ok(f, db_flush(f->db, NULL, &f->diag));
    assert_int_equal(number(f, "SELECT count(*) FROM log WHERE n = a + 1"),
                     200);
    commit(f);
}

static void parameters_are_copied(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("INSERT INTO t SELECT ?1, ?2, value FROM"
                               " json_each(?3)");
    char text[] = "abc";
    int64_t items[] = {1, 2};
    struct db_value params[] = {
        db_string(text),
        db_bytes((struct text){text, 3}),
        db_integers(items, 2),
    };

    run(f, "CREATE TABLE t (a TEXT, b BLOB, c INTEGER) STRICT");
    begin(f);
    ok(f, db_queue(f->db, &sql, params, 3, 2, 1, &f->diag));
    memset(text, 'x', 3);
    items[0] = 40;
    items[1] = 50;
    params[0] = db_null();
    commit(f);
    assert_int_equal(
        number(f, "SELECT sum(c) FROM t WHERE a = 'abc' AND b = x'616263'"), 3);
}

static void a_query_sends_the_queue_first(void **state)
{
    struct fixture *f = *state;

    begin_with_table(f);
    insert_later(f, 1, 1);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
    insert_later(f, 2, 1);
    run(f, "UPDATE t SET a = a + 10 WHERE a = 2");
    commit(f);
    assert_int_equal(number(f, "SELECT max(a) FROM t"), 12);
}

static void another_number_of_rows_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    int64_t tag = 0;

    begin_with_table(f);
    insert_later(f, 1, 5);
    queue(f, "DELETE FROM t WHERE a = ?1", 2, 1, 6);
    insert_later(f, 3, 7);
    assert_int_equal(db_commit(f->db, &tag, &f->diag), STATUS_CONFLICT);
    assert_int_equal(tag, 6);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void rows_of_an_earlier_statement_do_not_count(void **state)
{
    struct fixture *f = *state;

    begin_with_table(f);
    insert_later(f, 1, 1);
    queue(f, "SELECT ?1", 5, 0, 2);
    queue(f, "INSERT INTO t SELECT 2 WHERE ?1 = 0", 5, 0, 3);
    commit(f);
}

static void the_tag_of_the_failure_comes_back(void **state)
{
    struct fixture *f = *state;
    int64_t tag = 0;

    begin_with_table(f);
    insert_later(f, 1, 11);
    insert_later(f, 1, 12);
    insert_later(f, 2, 13);
    /* whichever call sent it */
    assert_int_equal(try_run(f, f->db, "SELECT 1"), STATUS_UNIQUE);
    assert_int_equal(db_failed_tag(f->db), 12);
    assert_int_equal(db_flush(f->db, &tag, &f->diag), STATUS_UNIQUE);
    assert_int_equal(tag, 12);
    db_rollback(f->db);
    assert_int_equal(db_failed_tag(f->db), -1);
}

static void a_queue_needs_a_transaction(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT 1");

    assert_int_equal(db_queue(f->db, &sql, NULL, 0, DB_ANY_ROWS, 1, &f->diag),
                     STATUS_PERMANENT);
}

static void what_was_dropped_never_runs(void **state)
{
    struct fixture *f = *state;
    size_t mark;

    begin_with_table(f);
    insert_later(f, 1, 1);
    mark = db_queue_mark(f->db);
    insert_later(f, 2, 2);
    insert_later(f, 3, 2);
    assert_true(db_queue_holds(f->db, mark));
    db_queue_drop(f->db, mark);
    insert_later(f, 4, 3);
    commit(f);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 5);
}

static void a_mark_does_not_hold_what_went_out(void **state)
{
    struct fixture *f = *state;
    struct db_sql query = script_sql("SELECT 1");
    struct db_rows *rows;
    size_t mark;

    begin_with_table(f);
    mark = db_queue_mark(f->db);
    insert_later(f, 1, 1);
    ok(f, db_flush(f->db, NULL, &f->diag));
    assert_false(db_queue_holds(f->db, mark));

    mark = db_queue_mark(f->db);
    assert_true(db_queue_holds(f->db, mark));
    run(f, "INSERT INTO t VALUES (2)");
    assert_false(db_queue_holds(f->db, mark));

    mark = db_queue_mark(f->db);
    ok(f, db_query(f->db, &query, NULL, 0, &rows, &f->diag));
    db_rows_close(rows);
    assert_false(db_queue_holds(f->db, mark));

    mark = db_queue_mark(f->db);
    insert_later(f, 3, 1);
    db_rollback(f->db);
    assert_false(db_queue_holds(f->db, mark));
}

static void a_rollback_to_drops_the_queue_behind_it(void **state)
{
    struct fixture *f = *state;

    begin_with_table(f);
    insert_later(f, 1, 1);
    ok(f, db_savepoint(f->db, &f->diag));
    insert_later(f, 2, 2);
    ok(f, db_rollback_to(f->db, &f->diag));
    commit(f);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 1);
}

/* --- bulk ---------------------------------------------------------------- */

static const struct db_column account_columns[] = {
    {"id", DB_TEXT, DB_KEY},
    {"name", DB_TEXT, DB_SET},
    {"total", DB_INT64, DB_ADD},
};
static const struct db_table accounts = {"account", account_columns, 3,
                                         DB_HOST};

static void make_accounts(struct fixture *f)
{
    run(f, "CREATE TABLE account (id TEXT PRIMARY KEY, name TEXT,"
           " total INTEGER)");
}

static enum status bulk(struct fixture *f, enum db_bulk what,
                        const struct db_table *table,
                        const struct db_value *values, size_t nrows)
{
    int64_t tag;
    enum status status;

    begin(f);
    ok(f, db_queue_bulk(f->db, what, table, values, nrows, 77, &f->diag));
    status = db_commit(f->db, &tag, &f->diag);
    assert_int_equal(tag, status == STATUS_OK ? -1 : 77);
    return status;
}

static void an_upsert_sets_and_adds(void **state)
{
    struct fixture *f = *state;
    const struct db_value first[] = {
        db_string("a"), db_string("Ann"), db_integer(5),
        db_string("b"), db_null(),        db_null(),
    };
    const struct db_value second[] = {
        db_string("a"), db_string("Eve"), db_integer(-7),
        db_string("b"), db_string("Bob"), db_integer(3),
        db_string("c"), db_string("Cid"), db_integer(INT64_MAX),
    };

    make_accounts(f);
    ok(f, bulk(f, DB_UPSERT, &accounts, first, 2));
    ok(f, bulk(f, DB_UPSERT, &accounts, second, 3));
    assert_int_equal(
        number(f, "SELECT total FROM account WHERE id = 'a' AND name = 'Eve'"),
        -2);
    assert_int_equal(number(f, "SELECT total FROM account WHERE name = 'Bob'"),
                     3);
    assert_int_equal(number(f, "SELECT total FROM account WHERE id = 'c'"),
                     INT64_MAX);
}

static void a_sum_beyond_64_bits_is_an_error_and_no_real_number(void **state)
{
    struct fixture *f = *state;
    const struct db_value row[] = {db_string("c"), db_null(),
                                   db_integer(INT64_MAX)};

    make_accounts(f);
    ok(f, bulk(f, DB_UPSERT, &accounts, row, 1));
    assert_int_equal(bulk(f, DB_UPSERT, &accounts, row, 1), STATUS_PERMANENT);
    assert_says(f, "integer overflow");
    assert_int_equal(number(f, "SELECT total FROM account"), INT64_MAX);
}

static void integers_may_be_added_to_a_real_column(void **state)
{
    struct fixture *f = *state;
    const struct db_value row[] = {db_string("c"), db_null(), db_integer(2)};

    run(f, "CREATE TABLE account (id TEXT PRIMARY KEY, name TEXT,"
           " total REAL) STRICT");
    run(f, "INSERT INTO account VALUES ('c', NULL, 0.5)");
    ok(f, bulk(f, DB_UPSERT, &accounts, row, 1));
    assert_int_equal(number(f, "SELECT total = 2.5 FROM account"), 1);
}

static void an_upsert_of_keys_only_keeps_the_row(void **state)
{
    struct fixture *f = *state;
    static const struct db_column columns[] = {{"id", DB_TEXT, DB_KEY}};
    static const struct db_table table = {"account", columns, 1, DB_HOST};
    const struct db_value rows[] = {db_string("a"), db_string("b")};

    make_accounts(f);
    run(f, "INSERT INTO account VALUES ('a', 'Ann', 1)");
    ok(f, bulk(f, DB_UPSERT, &table, rows, 2));
    assert_int_equal(number(f, "SELECT count(name) * 10 + count(*)"
                               " FROM account"),
                     12);
}

static void an_insert_of_a_key_that_is_there_names_the_column(void **state)
{
    struct fixture *f = *state;
    const struct db_value rows[] = {
        db_string("a"), db_null(), db_null(),
        db_string("a"), db_null(), db_null(),
    };

    make_accounts(f);
    assert_int_equal(bulk(f, DB_INSERT, &accounts, rows, 2), STATUS_UNIQUE);
    assert_string_equal(f->diag.constraint, "account.id");
    assert_int_equal(number(f, "SELECT count(*) FROM account"), 0);
}

static const struct db_column guarded_columns[] = {
    {"id", DB_TEXT, DB_KEY},
    {"total", DB_INT64, DB_GUARD},
    {"name", DB_TEXT, DB_SET},
};
static const struct db_table guarded = {"account", guarded_columns, 3, DB_HOST};
static const struct db_table guarded_delete = {"account", guarded_columns, 2,
                                               DB_HOST};

static void fill_accounts(struct fixture *f)
{
    make_accounts(f);
    run(f, "INSERT INTO account VALUES ('a', 'Ann', 1), ('b', 'Bob', 2)");
}

static void an_update_whose_guards_match_is_done(void **state)
{
    struct fixture *f = *state;
    const struct db_value rows[] = {
        db_string("a"), db_integer(1), db_string("x"),
        db_string("b"), db_integer(2), db_null(),
    };

    fill_accounts(f);
    ok(f, bulk(f, DB_UPDATE, &guarded, rows, 2));
    assert_int_equal(number(f, "SELECT count(*) FROM account WHERE name = 'x'"
                               " OR (id = 'b' AND name IS NULL)"),
                     2);
}

static void an_update_whose_guard_differs_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    const struct db_value rows[] = {
        db_string("a"), db_integer(1), db_string("x"),
        db_string("b"), db_integer(9), db_string("y"),
    };

    fill_accounts(f);
    assert_int_equal(bulk(f, DB_UPDATE, &guarded, rows, 2), STATUS_CONFLICT);
    assert_says(f, "\"b\" of table account");
    assert_int_equal(number(f, "SELECT count(*) FROM account WHERE name = 'x'"),
                     0);
}

static void a_delete_obeys_key_and_guard(void **state)
{
    struct fixture *f = *state;
    const struct db_value good[] = {db_string("a"), db_integer(1)};
    const struct db_value bad[] = {db_string("b"), db_integer(1)};

    fill_accounts(f);
    ok(f, bulk(f, DB_DELETE, &guarded_delete, good, 1));
    assert_int_equal(bulk(f, DB_DELETE, &guarded_delete, bad, 1),
                     STATUS_CONFLICT);
    assert_int_equal(number(f, "SELECT count(*) FROM account WHERE id = 'b'"),
                     1);
}

static void a_name_that_is_no_identifier_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"a\" --", "", "1a", "a b", "t.a"};
    const struct db_value row[] = {db_string("a")};

    make_accounts(f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct db_column column = {bad[i], DB_TEXT, DB_KEY};
        const struct db_column fine = {"id", DB_TEXT, DB_KEY};
        const struct db_table by_column = {"account", &column, 1, DB_SCRIPT};
        const struct db_table by_table = {bad[i], &fine, 1, DB_SCRIPT};

        assert_int_equal(bulk(f, DB_UPSERT, &by_column, row, 1),
                         STATUS_PERMANENT);
        assert_int_equal(bulk(f, DB_UPSERT, &by_table, row, 1),
                         STATUS_PERMANENT);
    }
}

static void columns_that_do_not_fit_the_statement_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct db_value row[] = {db_string("a"), db_integer(1), db_null()};

    make_accounts(f);
    assert_int_equal(bulk(f, DB_UPSERT, &guarded, row, 1), STATUS_PERMANENT);
    assert_int_equal(bulk(f, DB_UPDATE, &guarded_delete, row, 1),
                     STATUS_PERMANENT);
    assert_int_equal(bulk(f, DB_DELETE, &guarded, row, 1), STATUS_PERMANENT);
}

/* --- lookup -------------------------------------------------------------- */

struct found {
    size_t count;
    size_t indexes;
    int64_t total;
    enum status answer;
};

static enum status take_row(void *arg, size_t index, struct db_rows *row,
                            struct diag *diag)
{
    struct found *found = arg;

    found->count++;
    found->indexes += index;
    found->total += db_get_int64(row, 1);
    assert_int_equal(db_columns(row), 2);
    assert_string_equal(db_column_name(row, 0), "name");
    return found->answer == STATUS_OK
               ? STATUS_OK
               : diag_set(diag, found->answer, "said no");
}

static void a_lookup_tells_which_keys_have_a_row(void **state)
{
    struct fixture *f = *state;
    const struct text keys[] = {TEXT_LITERAL("x"), TEXT_LITERAL("b"),
                                TEXT_LITERAL("B"), TEXT_LITERAL("a")};
    struct found found = {0};

    fill_accounts(f);
    begin(f);
    ok(f, db_lookup(f->db, &accounts, keys, 4, take_row, &found, &f->diag));
    assert_int_equal(found.count, 2);
    assert_int_equal(found.indexes, 4);
    assert_int_equal(found.total, 3);
    commit(f);
}

static void what_the_callback_says_does_not_doom_the_transaction(void **state)
{
    struct fixture *f = *state;
    const struct text keys[] = {TEXT_LITERAL("a"), TEXT_LITERAL("b")};
    struct found found = {.answer = STATUS_FAILED};

    fill_accounts(f);
    begin(f);
    assert_int_equal(
        db_lookup(f->db, &accounts, keys, 2, take_row, &found, &f->diag),
        STATUS_FAILED);
    assert_int_equal(found.count, 1);
    commit(f);
}

static void a_looked_up_value_of_another_type_is_an_error(void **state)
{
    struct fixture *f = *state;
    const struct text keys[] = {TEXT_LITERAL("a")};
    struct found found = {0};

    make_accounts(f);
    run(f, "INSERT INTO account VALUES ('a', 'Ann', 1.5)");
    begin(f);
    assert_int_equal(
        db_lookup(f->db, &accounts, keys, 1, take_row, &found, &f->diag),
        STATUS_PERMANENT);
    assert_says(f, "\"total\"");
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_PERMANENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_database(queued_statements_run_in_order),
        with_database(parameters_are_copied),
        with_database(a_query_sends_the_queue_first),
        with_database(another_number_of_rows_is_a_conflict),
        with_database(rows_of_an_earlier_statement_do_not_count),
        with_database(the_tag_of_the_failure_comes_back),
        with_database(a_queue_needs_a_transaction),
        with_database(what_was_dropped_never_runs),
        with_database(a_mark_does_not_hold_what_went_out),
        with_database(a_rollback_to_drops_the_queue_behind_it),
        with_database(an_upsert_sets_and_adds),
        with_database(a_sum_beyond_64_bits_is_an_error_and_no_real_number),
        with_database(integers_may_be_added_to_a_real_column),
        with_database(an_upsert_of_keys_only_keeps_the_row),
        with_database(an_insert_of_a_key_that_is_there_names_the_column),
        with_database(an_update_whose_guards_match_is_done),
        with_database(an_update_whose_guard_differs_is_a_conflict),
        with_database(a_delete_obeys_key_and_guard),
        with_database(a_name_that_is_no_identifier_is_refused),
        with_database(columns_that_do_not_fit_the_statement_are_refused),
        with_database(a_lookup_tells_which_keys_have_a_row),
        with_database(what_the_callback_says_does_not_doom_the_transaction),
        with_database(a_looked_up_value_of_another_type_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
