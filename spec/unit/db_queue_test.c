/* The queue, bulk statements and lookups, on every driver. */
#include "db_support.h"

/* --- the queue ----------------------------------------------------------- */

static void queued_statements_run_in_order(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE steps (n BIGINT NOT NULL)");
    run(f, "INSERT INTO steps VALUES (0)");
    begin(f);
    for (int64_t i = 0; i < 300; i++)
        queue_one(f, "UPDATE steps SET n = n + 1 WHERE n = ?1", i, 1, i);
    commit(f);
    assert_int_equal(number(f, "SELECT n FROM steps"), 300);
}

static void more_statements_than_are_kept(void **state)
{
    struct fixture *f = *state;
    static char texts[600][64];

    make_table(f);
    for (int round = 0; round < 2; round++) {
        begin(f);
        for (int i = 0; i < 600; i++) {
            snprintf(texts[i], sizeof(texts[i]),
                     "INSERT INTO t (a) VALUES (?1 + %d)", i * 10);
            queue_one(f, texts[i], round, 1, i);
        }
        commit(f);
    }
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1200);
}

static void
another_number_of_rows_is_a_conflict_and_nothing_commits(void **state)
{
    struct fixture *f = *state;
    int64_t tag = 0;

    make_table(f);
    begin(f);
    insert_later(f, 1, 5);
    queue_one(f, "DELETE FROM t WHERE a = ?1", 2, 1, 6);
    insert_later(f, 3, 7);
    assert_int_equal(db_commit(f->db, &tag, &f->diag), STATUS_CONFLICT);
    assert_says(f, "touched 0 rows instead of 1");
    assert_int_equal(tag, 6);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void reading_touches_no_rows(void **state)
{
    struct fixture *f = *state;
    struct db_sql select = sql_of("SELECT a FROM t");
    int64_t affected = -1;

    make_table(f);
    run(f, "INSERT INTO t (a) VALUES (1)");
    ok(f, db_execute(f->db, &select, NULL, 0, &affected, &f->diag));
    assert_int_equal(affected, 0);
    begin(f);
    queue_one(f, "SELECT ?1", 5, 0, 2);
    commit(f);
}

static void the_tag_of_the_failure_comes_back(void **state)
{
    struct fixture *f = *state;
    int64_t tag = 0;

    make_table(f);
    begin(f);
    insert_later(f, 1, 11);
    insert_later(f, 1, 12);
    insert_later(f, 2, 13);
    assert_int_equal(try_run(f, f->db, "SELECT 1"), STATUS_UNIQUE);
    assert_int_equal(db_failed_tag(f->db), 12);
    assert_int_equal(db_flush(f->db, &tag, &f->diag), STATUS_UNIQUE);
    assert_int_equal(tag, 12);
    db_rollback(f->db);
    assert_int_equal(db_failed_tag(f->db), -1);
    /* what was prepared for nothing does not stand in the way */
    begin(f);
    insert_later(f, 4, 1);
    commit(f);
}

/* A statement that cannot even be sent does not hide an earlier failure. */
static void the_first_failure_counts(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("UPDATE t SET b = ?1");
    struct db_value bad = db_bytes(TEXT_LITERAL("x"));
    int64_t tag = 0;

    make_table(f);
    bad.type = DB_TEXT;
    bad.as.text = (struct text){"a\0b", 3};
    begin(f);
    insert_later(f, 1, 1);
    insert_later(f, 1, 2);
    ok(f, db_queue(f->db, &sql, &bad, 1, DB_ANY_ROWS, 3, &f->diag));
    assert_int_equal(db_commit(f->db, &tag, &f->diag), STATUS_UNIQUE);
    assert_int_equal(tag, 2);

    begin(f);
    insert_later(f, 1, 1);
    ok(f, db_queue(f->db, &sql, &bad, 1, DB_ANY_ROWS, 3, &f->diag));
    assert_int_equal(db_commit(f->db, &tag, &f->diag), STATUS_PERMANENT);
    assert_says(f, "NUL");
    assert_int_equal(tag, 3);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void a_query_sends_the_queue_first(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
    insert_later(f, 2, 1);
    run(f, "UPDATE t SET a = a + 10 WHERE a = 2");
    commit(f);
    assert_int_equal(number(f, "SELECT max(a) FROM t"), 12);
}

static void rows_of_an_earlier_statement_do_not_count(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    queue_one(f, "SELECT ?1", 5, 0, 2);
    queue_one(f, "INSERT INTO t (a) SELECT 2 FROM t WHERE ?1 = 0", 5, 0, 3);
    commit(f);
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

    make_table(f);
    begin(f);
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

    make_table(f);
    begin(f);
    mark = db_queue_mark(f->db);
    insert_later(f, 1, 1);
    ok(f, db_flush(f->db, NULL, &f->diag));
    assert_false(db_queue_holds(f->db, mark));

    mark = db_queue_mark(f->db);
    assert_true(db_queue_holds(f->db, mark));
    run(f, "INSERT INTO t (a) VALUES (2)");
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

/* --- bulk ---------------------------------------------------------------- */

static const struct db_column account_columns[] = {
    {"id", DB_TEXT, DB_KEY},
    {"name", DB_TEXT, DB_SET},
    {"total", DB_INT64, DB_ADD},
};
static const struct db_table accounts = {"ACCOUNT", account_columns, 3,
                                         DB_HOST};
static const struct db_column guarded_columns[] = {
    {"id", DB_TEXT, DB_KEY},
    {"total", DB_INT64, DB_GUARD},
    {"name", DB_TEXT, DB_SET},
};
static const struct db_table guarded = {"ACCOUNT", guarded_columns, 3, DB_HOST};
static const struct db_table guarded_delete = {"ACCOUNT", guarded_columns, 2,
                                               DB_HOST};

static void make_accounts(struct fixture *f)
{
    run(f, "CREATE TABLE ACCOUNT (id VARCHAR(255) NOT NULL PRIMARY KEY,"
           " name TEXT, total BIGINT)");
}

static void fill_accounts(struct fixture *f)
{
    make_accounts(f);
    run(f, "INSERT INTO ACCOUNT VALUES ('a', 'Ann', 1), ('b', 'Bob', 2)");
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
        number(f, "SELECT total FROM ACCOUNT WHERE id = 'a' AND name = 'Eve'"),
        -2);
    assert_int_equal(number(f, "SELECT total FROM ACCOUNT WHERE name = 'Bob'"),
                     3);
    assert_int_equal(number(f, "SELECT total FROM ACCOUNT WHERE id = 'c'"),
                     INT64_MAX);
    /* beyond 64 bits it is an error and no other number */
    assert_int_equal(bulk(f, DB_UPSERT, &accounts, second + 6, 1),
                     STATUS_PERMANENT);
    assert_int_equal(number(f, "SELECT total FROM ACCOUNT WHERE id = 'c'"),
                     INT64_MAX);
}

static void an_upsert_of_keys_only_keeps_the_row(void **state)
{
    struct fixture *f = *state;
    static const struct db_table table = {"ACCOUNT", account_columns, 1,
                                          DB_HOST};
    const struct db_value rows[] = {db_string("a"), db_string("z")};

    fill_accounts(f);
    ok(f, bulk(f, DB_UPSERT, &table, rows, 2));
    assert_int_equal(number(f, "SELECT count(name) * 10 + count(*)"
                               " FROM ACCOUNT"),
                     23);
}

static void an_insert_of_a_key_that_is_there_is_unique(void **state)
{
    struct fixture *f = *state;
    const struct db_value rows[] = {
        db_string("a"), db_null(), db_null(),
        db_string("a"), db_null(), db_null(),
    };

    make_accounts(f);
    assert_int_equal(bulk(f, DB_INSERT, &accounts, rows, 2), STATUS_UNIQUE);
    assert_true(f->diag.constraint[0] != '\0');
    assert_int_equal(number(f, "SELECT count(*) FROM ACCOUNT"), 0);
}

static void an_update_must_meet_every_row(void **state)
{
    struct fixture *f = *state;
    const struct db_value good[] = {
        db_string("a"), db_integer(1), db_string("x"),
        db_string("b"), db_integer(2), db_null(),
    };
    const struct db_value bad[] = {
        db_string("a"), db_integer(1), db_string("y"),
        db_string("b"), db_integer(9), db_string("y"),
    };

    fill_accounts(f);
    ok(f, bulk(f, DB_UPDATE, &guarded, good, 2));
    assert_int_equal(bulk(f, DB_UPDATE, &guarded, bad, 2), STATUS_CONFLICT);
    /* MariaDB counts the rows of them all together */
    assert_says(f, is_mariadb(f) ? "of table ACCOUNT was changed"
                                 : "\"b\" of table ACCOUNT was changed");
    assert_int_equal(number(f, "SELECT count(*) FROM ACCOUNT WHERE name = 'x'"
                               " OR (id = 'b' AND name IS NULL)"),
                     2);
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
    assert_int_equal(number(f, "SELECT count(*) FROM ACCOUNT WHERE id = 'b'"),
                     1);
}

static void names_and_columns_are_checked(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"a\" --", "", "1a", "a b", "t.a"};
    const struct db_value row[] = {db_string("a"), db_integer(1), db_null()};

    make_accounts(f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct db_column column = {bad[i], DB_TEXT, DB_KEY};
        const struct db_table by_column = {"ACCOUNT", &column, 1, DB_SCRIPT};
        const struct db_table by_table = {bad[i], account_columns, 1,
                                          DB_SCRIPT};

        assert_int_equal(bulk(f, DB_UPSERT, &by_column, row, 1),
                         STATUS_PERMANENT);
        assert_int_equal(bulk(f, DB_UPSERT, &by_table, row, 1),
                         STATUS_PERMANENT);
    }
    assert_int_equal(bulk(f, DB_UPSERT, &guarded, row, 1), STATUS_PERMANENT);
    assert_int_equal(bulk(f, DB_UPDATE, &guarded_delete, row, 1),
                     STATUS_PERMANENT);
    assert_int_equal(bulk(f, DB_DELETE, &guarded, row, 1), STATUS_PERMANENT);
}

/* Columns of a script's table may have any type, and rows values of several. */
static void values_find_the_type_of_their_column(void **state)
{
    struct fixture *f = *state;
    static const struct db_column columns[] = {
        {"id", DB_INT64, DB_KEY},   {"day", DB_TEXT, DB_SET},
        {"ratio", DB_NULL, DB_SET}, {"price", DB_DECIMAL, DB_SET},
        {"good", DB_BOOL, DB_SET},
    };
    static const struct db_table table = {"kinds", columns, 5, DB_SCRIPT};
    const struct db_value rows[] = {
        db_integer(1),    db_string("2026-01-31"),
        db_integer(2),    db_decimal(TEXT_LITERAL("12.34")),
        db_boolean(true), db_integer(2),
        db_null(),        db_number(0.5),
        db_null(),        db_null(),
    };

    run(f, has_server(f)
               ? "CREATE TABLE kinds (id INT PRIMARY KEY, day DATE,"
                 " ratio DOUBLE PRECISION, price NUMERIC(10,2), good BOOLEAN)"
               : "CREATE TABLE kinds (id INTEGER PRIMARY KEY, day TEXT,"
                 " ratio REAL, price INTEGER, good INTEGER) STRICT");
    ok(f, bulk(f, DB_UPSERT, &table, rows, 2));
    assert_int_equal(number(f, "SELECT count(*) FROM kinds WHERE ratio = 2"
                               " AND day = '2026-01-31'"),
                     1);
    assert_int_equal(number(f, "SELECT count(*) FROM kinds WHERE ratio = 0.5"
                               " AND day IS NULL AND price IS NULL"),
                     1);
    assert_int_equal(
        number(f, has_server(f)
                      ? "SELECT count(*) FROM kinds WHERE price = 12.34"
                        " AND good"
                      : "SELECT count(*) FROM kinds WHERE price = 1234"
                        " AND good = 1"),
        1);
}

static void a_fraction_is_not_rounded_into_an_integer_column(void **state)
{
    struct fixture *f = *state;
    const struct db_value row[] = {db_string("a"), db_null(), db_number(1.5)};
    static const struct db_column columns[] = {
        {"id", DB_TEXT, DB_KEY},
        {"name", DB_TEXT, DB_SET},
        {"total", DB_DOUBLE, DB_SET},
    };
    static const struct db_table table = {"ACCOUNT", columns, 3, DB_SCRIPT};

    run(f, has_server(f) ? "CREATE TABLE ACCOUNT (id VARCHAR(255) PRIMARY KEY,"
                           " name TEXT, total BIGINT)"
                         : "CREATE TABLE ACCOUNT (id TEXT PRIMARY KEY,"
                           " name TEXT, total INTEGER) STRICT");
    assert_int_equal(bulk(f, DB_UPSERT, &table, row, 1), STATUS_PERMANENT);
}

static void too_long_text_is_refused_and_not_cut(void **state)
{
    struct fixture *f = *state;
    char text[300];
    const struct db_value row[] = {
        db_text_value((struct text){text, sizeof(text)}), db_null(),
        db_integer(1)};

    memset(text, 'x', sizeof(text));
    run(f, has_server(f)
               ? "CREATE TABLE ACCOUNT (id VARCHAR(255) PRIMARY KEY,"
                 " name TEXT, total BIGINT)"
               : "CREATE TABLE ACCOUNT (id TEXT PRIMARY KEY"
                 " CHECK (length(id) <= 255), name TEXT, total INTEGER)");
    assert_int_equal(bulk(f, DB_UPSERT, &accounts, row, 1), STATUS_PERMANENT);
    assert_int_equal(number(f, "SELECT count(*) FROM ACCOUNT"), 0);
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
    struct found stopped = {.answer = STATUS_FAILED};

    fill_accounts(f);
    begin(f);
    ok(f, db_lookup(f->db, &accounts, keys, 4, take_row, &found, &f->diag));
    assert_int_equal(found.count, 2);
    assert_int_equal(found.indexes, 4);
    assert_int_equal(found.total, 3);
    assert_int_equal(
        db_lookup(f->db, &accounts, keys, 4, take_row, &stopped, &f->diag),
        STATUS_FAILED);
    assert_int_equal(stopped.count, 1);
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

static void what_is_queued_goes_in_front_of_a_lookup(void **state)
{
    struct fixture *f = *state;
    const struct text keys[] = {TEXT_LITERAL("a"), TEXT_LITERAL("b")};
    const struct db_value row[] = {db_string("a"), db_null(), db_integer(9)};
    struct found found = {0};

    make_accounts(f);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_INSERT, &accounts, row, 1, 1, &f->diag));
    queue_one(f, "INSERT INTO ACCOUNT (id, total) VALUES ('b', ?1)", 4, 1, 2);
    ok(f, db_lookup(f->db, &accounts, keys, 2, take_row, &found, &f->diag));
    assert_int_equal(found.count, 2);
    assert_int_equal(found.total, 13);
    commit(f);
    assert_int_equal(number(f, "SELECT sum(total) FROM ACCOUNT"), 13);
}

static void
what_fails_in_front_of_a_lookup_is_named_and_nothing_is_read(void **state)
{
    struct fixture *f = *state;
    const struct text keys[] = {TEXT_LITERAL("a")};
    struct found found = {0};
    int64_t tag = 0;

    fill_accounts(f);
    begin(f);
    queue_one(f, "UPDATE ACCOUNT SET name = 'x' WHERE total < ?1", 1000,
              DB_ANY_ROWS, 3);
    queue_one(f, "DELETE FROM ACCOUNT WHERE total = ?1", 1000, 1, 4);
    assert_int_equal(
        db_lookup(f->db, &accounts, keys, 1, take_row, &found, &f->diag),
        STATUS_CONFLICT);
    assert_int_equal(found.count, 0);
    assert_int_equal(db_failed_tag(f->db), 4);
    assert_int_equal(db_commit(f->db, &tag, &f->diag), STATUS_CONFLICT);
    assert_int_equal(tag, 4);
    assert_int_equal(number(f, "SELECT count(*) FROM ACCOUNT WHERE name = 'x'"),
                     0);
}

/* --- on SQLite alone -------------------------------------------------------
 */

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

static void an_insert_of_a_key_that_is_there_names_the_column(void **state)
{
    struct fixture *f = *state;
    const struct db_value rows[] = {
        db_string("a"), db_null(), db_null(),
        db_string("a"), db_null(), db_null(),
    };

    make_accounts(f);
    assert_int_equal(bulk(f, DB_INSERT, &accounts, rows, 2), STATUS_UNIQUE);
    assert_string_equal(f->diag.constraint, "ACCOUNT.id");
    assert_int_equal(number(f, "SELECT count(*) FROM account"), 0);
}

static void a_looked_up_value_of_another_type_is_an_error(void **state)
{
    struct fixture *f = *state;
    const struct text keys[] = {TEXT_LITERAL("a")};
    struct found found = {0};

    run(f, "CREATE TABLE account (id TEXT PRIMARY KEY, name TEXT, total)");
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
        on_every_driver(queued_statements_run_in_order),
        on_every_driver(more_statements_than_are_kept),
        on_every_driver(
            another_number_of_rows_is_a_conflict_and_nothing_commits),
        on_every_driver(reading_touches_no_rows),
        on_every_driver(the_tag_of_the_failure_comes_back),
        on_every_driver(the_first_failure_counts),
        on_every_driver(an_upsert_sets_and_adds),
        on_every_driver(an_upsert_of_keys_only_keeps_the_row),
        on_every_driver(an_insert_of_a_key_that_is_there_is_unique),
        on_every_driver(an_update_must_meet_every_row),
        on_every_driver(a_delete_obeys_key_and_guard),
        on_every_driver(names_and_columns_are_checked),
        on_every_driver(values_find_the_type_of_their_column),
        on_sqlite(a_fraction_is_not_rounded_into_an_integer_column),
        on_both_postgres(a_fraction_is_not_rounded_into_an_integer_column),
        on_every_driver(too_long_text_is_refused_and_not_cut),
        on_every_driver(a_lookup_tells_which_keys_have_a_row),
        on_every_driver(a_query_sends_the_queue_first),
        on_every_driver(rows_of_an_earlier_statement_do_not_count),
        on_every_driver(a_queue_needs_a_transaction),
        on_every_driver(what_was_dropped_never_runs),
        on_every_driver(a_mark_does_not_hold_what_went_out),
        on_every_driver(what_the_callback_says_does_not_doom_the_transaction),
        on_every_driver(what_is_queued_goes_in_front_of_a_lookup),
        on_every_driver(
            what_fails_in_front_of_a_lookup_is_named_and_nothing_is_read),
        on_sqlite(parameters_are_copied),
        on_sqlite(a_sum_beyond_64_bits_is_an_error_and_no_real_number),
        on_sqlite(integers_may_be_added_to_a_real_column),
        on_sqlite(an_insert_of_a_key_that_is_there_names_the_column),
        on_sqlite(a_looked_up_value_of_another_type_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
