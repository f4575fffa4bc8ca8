/*
 * The rules of db/db.h that hold on every driver, in SQL that every dialect
 * reads. What only one of them can do stands in its own test.
 */
#include "db_support.h"

#include "base/clock.h"

/* --- transactions -------------------------------------------------------- */

static void rows_of_a_commit_stay_and_of_a_rollback_go(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    run(f, "INSERT INTO t (a) VALUES (1)");
    commit(f);
    begin(f);
    run(f, "INSERT INTO t (a) VALUES (2)");
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 1);
}

static void after_a_failure_every_call_fails_alike(void **state)
{
    struct fixture *f = *state;
    char first[DIAG_MESSAGE_SIZE];

    make_table(f);
    begin(f);
    run(f, "INSERT INTO t (a) VALUES (1)");
    assert_int_equal(try_run(f, f->db, "INSERT INTO t (a) VALUES (1)"),
                     STATUS_UNIQUE);
    strcpy(first, f->diag.message);
    assert_true(f->diag.constraint[0] != '\0');
    assert_int_equal(try_run(f, f->db, "SELECT 1"), STATUS_UNIQUE);
    assert_string_equal(f->diag.message, first);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNIQUE);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void outside_of_a_transaction_a_failure_does_not_stick(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(try_run(f, f->db, "SELECT * FROM nowhere"),
                     STATUS_PERMANENT);
    assert_int_equal(number(f, "SELECT 1"), 1);
}

static void savepoints_nest_and_end_a_failure(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    ok(f, db_savepoint(f->db, &f->diag));
    run(f, "INSERT INTO t (a) VALUES (1)");
    ok(f, db_savepoint(f->db, &f->diag));
    run(f, "INSERT INTO t (a) VALUES (10)");
    assert_int_equal(try_run(f, f->db, "INSERT INTO t (a) VALUES (10)"),
                     STATUS_UNIQUE);
    assert_int_equal(db_release(f->db, &f->diag), STATUS_UNIQUE);
    ok(f, db_rollback_to(f->db, &f->diag));
    ok(f, db_savepoint(f->db, &f->diag));
    insert_later(f, 100, 1);
    ok(f, db_release(f->db, &f->diag));
    ok(f, db_release(f->db, &f->diag));
    commit(f);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 101);
}

static void a_rollback_to_drops_the_queue_behind_it(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    ok(f, db_savepoint(f->db, &f->diag));
    insert_later(f, 2, 2);
    ok(f, db_rollback_to(f->db, &f->diag));
    commit(f);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 1);
}

static void more_savepoints_than_wait_at_once(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    for (int i = 0; i < 100; i++) {
        ok(f, db_savepoint(f->db, &f->diag));
        if (i % 3 == 0)
            ok(f, db_rollback_to(f->db, &f->diag));
        else
            ok(f, db_release(f->db, &f->diag));
    }
    insert_later(f, 7, 1);
    commit(f);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 7);
}

static void a_view_of_a_reader_does_not_move(void **state)
{
    struct fixture *f = *state;
    struct db *writer = fixture_connect(f);

    make_table(f);
    ok(f, db_begin_read(f->db, &f->diag));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    ok(f, try_run(f, writer, "INSERT INTO t (a) VALUES (1)"));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
    db_close(writer);
}

static void a_reader_cannot_write(void **state)
{
    struct fixture *f = *state;
    struct db_options options = {
        .url = f->url, .busy_timeout = 20000, .read_only = true};
    struct db *reader;

    make_table(f);
    ok(f, db_open(&options, &reader, &f->diag));
    assert_int_equal(try_run(f, reader, "INSERT INTO t (a) VALUES (1)"),
                     STATUS_PERMANENT);
    assert_says(f, is_mariadb(f) ? "READ ONLY" : "reading only");
    db_close(reader);
}

static void a_row_that_another_holds_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect_hasty(f);

    make_table(f);
    run(f, "INSERT INTO t (a) VALUES (1)");
    begin(f);
    run(f, "UPDATE t SET b = 'x'");
    assert_int_equal(try_run(f, other, "UPDATE t SET b = 'y'"),
                     STATUS_CONFLICT);
    commit(f);
    db_close(other);
}

static void reopening_forgets_an_open_transaction(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    ok(f, db_flush(f->db, NULL, &f->diag));
    ok(f, db_reopen(f->db, &f->diag));
    assert_false(db_in_transaction(f->db));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

/* --- values -------------------------------------------------------------- */

static void integers_of_64_bits_stay_exact(void **state)
{
    struct fixture *f = *state;
    static const int64_t values[] = {0, -1, INT64_MAX, INT64_MIN,
                                     INT64_C(9007199254740993)};
    struct db_sql sql = sql_of("INSERT INTO t (a) VALUES (?1)");
    struct db_sql find = sql_of("SELECT a FROM t WHERE a = ?1");

    make_table(f);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct db_value param = db_integer(values[i]);
        int64_t back = 0;
        bool found;

        ok(f, db_execute(f->db, &sql, &param, 1, NULL, &f->diag));
        ok(f, db_query_int64(f->db, &find, &param, 1, &back, &found, &f->diag));
        assert_true(found);
        assert_true(back == values[i]);
    }
}

#define MADE_AT INT64_C(1769847300123456)

static void every_type_comes_back_as_it_went_in(void **state)
{
    struct fixture *f = *state;
    struct uuid uuid;
    const char *create =
        is_mariadb(f) ? "CREATE TABLE v (i BIGINT, d DOUBLE, b BOOLEAN, s TEXT,"
                        " j LONGTEXT, y LONGBLOB, t DATETIME(6), u CHAR(36))"
        : has_server(f)
            ? "CREATE TABLE v (i BIGINT, d DOUBLE PRECISION, b BOOLEAN, s TEXT,"
              " j JSON, y BYTEA, t TIMESTAMPTZ, u UUID)"
            : "CREATE TABLE v (i INTEGER, d REAL, b INTEGER, s TEXT, j TEXT,"
              " y BLOB, t TEXT, u TEXT) STRICT";
    struct db_sql insert = sql_of("INSERT INTO v VALUES"
                                  " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    struct db_value params[8];

    run(f, create);
    if (has_server(f) && !is_mariadb(f))
        insert = sql_of("INSERT INTO v VALUES"
                        " (?1, ?2, ?3, ?4, ?5::json, ?6, ?7, ?8)");
    assert_true(
        uuid_parse(text_of("0190b8a0-0000-7000-8000-0123456789ab"), &uuid));
    params[0] = db_integer(-5);
    params[1] = db_number(0.1);
    params[2] = db_boolean(true);
    params[3] = db_string("caf\xc3\xa9 '\" \\ $1 ?1");
    params[4] = db_string("{\"b\": 1.0,  \"a\":\"\\u0000\", \"b\":2}");
    params[5] = db_bytes((struct text){"\0\x01\xff", 3});
    params[6] = db_timestamp(MADE_AT);
    params[7] = db_uuid(uuid);
    ok(f, db_execute(f->db, &insert, params, 8, NULL, &f->diag));

    for (int i = 0; i < 2; i++) { /* as the host and as a script reads */
        struct db_sql select = i == 0 ? sql_of("SELECT * FROM v")
                                      : script_sql("SELECT * FROM v");
        struct db_rows *rows;
        struct uuid back;
        bool more;

        ok(f, db_query(f->db, &select, NULL, 0, &rows, &f->diag));
        ok(f, db_next(rows, &more, &f->diag));
        assert_true(more);
        assert_int_equal(db_get_int64(rows, 0), -5);
        assert_true(db_get_double(rows, 1) == 0.1);
        assert_true(db_get_bool(rows, 2));
        assert_true(text_equal(db_get_text(rows, 3), params[3].as.text));
        assert_true(text_equal(db_get_text(rows, 4), params[4].as.text));
        assert_true(text_equal(db_get_text(rows, 5), params[5].as.text));
        assert_int_equal(db_get_timestamp(rows, 6), MADE_AT);
        back = db_get_uuid(rows, 7);
        assert_true(uuid_equal(&back, &uuid));
        ok(f, db_next(rows, &more, &f->diag));
        assert_false(more);
        db_rows_close(rows);
    }
}

static void text_that_no_database_could_hold_is_refused(void **state)
{
    struct fixture *f = *state;
    struct db_sql host = sql_of("UPDATE t SET b = ?1");
    struct db_sql script = script_sql(has_server(f) && !is_mariadb(f)
                                          ? "UPDATE t SET b = $1"
                                          : "UPDATE t SET b = ?1");
    struct db_value nul = db_text_value((struct text){"a\0b", 3});
    struct db_value bad = db_string("\xff");

    make_table(f);
    assert_int_equal(db_execute(f->db, &host, &nul, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "NUL");
    assert_int_equal(db_execute(f->db, &script, &bad, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "UTF-8");
}

static void a_value_of_another_type_fails_the_next_row(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT b FROM t");
    struct db_rows *rows;
    bool more;

    make_table(f);
    run(f, "INSERT INTO t VALUES (1, 'x')");
    begin(f);
    ok(f, db_query(f->db, &sql, NULL, 0, &rows, &f->diag));
    ok(f, db_next(rows, &more, &f->diag));
    assert_int_equal(db_get_int64(rows, 0), 0);
    assert_int_equal(db_next(rows, &more, &f->diag), STATUS_PERMANENT);
    assert_says(f, "\"b\"");
    db_rows_close(rows);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_PERMANENT);
}

static void several_results_may_be_open(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT a FROM t ORDER BY a");
    struct db_rows *one, *two;
    bool more;

    make_table(f);
    run(f, "INSERT INTO t (a) VALUES (1), (2)");
    begin(f);
    ok(f, db_query(f->db, &sql, NULL, 0, &one, &f->diag));
    ok(f, db_next(one, &more, &f->diag));
    ok(f, db_query(f->db, &sql, NULL, 0, &two, &f->diag));
    ok(f, db_next(two, &more, &f->diag));
    ok(f, db_next(one, &more, &f->diag));
    assert_int_equal(db_get_int64(one, 0), 2);
    assert_int_equal(db_get_int64(two, 0), 1);
    db_rows_close(one);
    db_rows_close(two);
    commit(f);
}

static void sums_of_integers_are_integers(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = script_sql("SELECT sum(a) FROM t");
    struct db_rows *rows;
    bool more;

    make_table(f);
    run(f, "INSERT INTO t (a) VALUES (1), (2)");
    ok(f, db_query(f->db, &sql, NULL, 0, &rows, &f->diag));
    ok(f, db_next(rows, &more, &f->diag));
    assert_int_equal(db_column_type(rows, 0), DB_INT64);
    assert_int_equal(db_get_int64(rows, 0), 3);
    db_rows_close(rows);
}

static void the_clock_of_the_database_is_near_ours(void **state)
{
    struct fixture *f = *state;
    int64_t now;

    ok(f, db_now(f->db, &now, &f->diag));
    assert_true(llabs(now - clock_now(NULL)) < 60 * CLOCK_SECOND);
}

/* --- scripts ------------------------------------------------------------- */

static void scripts_may_not_touch_session_or_tables(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT x",
        "RELEASE x",
        "/* ; */ -- ;\n COMMIT",
        "CREATE TABLE u (a BIGINT)",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN c TEXT",
        "INSERT INTO t (a) VALUES (1); DELETE FROM t",
        "",
        "  -- nothing",
    };

    make_table(f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct db_sql sql = script_sql(bad[i]);

        if (db_execute(f->db, &sql, NULL, 0, NULL, &f->diag) !=
            STATUS_PERMANENT)
            fail_msg("accepted: %s", bad[i]);
    }
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void a_statement_that_may_only_read_cannot_write(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"INSERT INTO t (a) VALUES (1)",
                                      "UPDATE t SET b = 'x'", "DELETE FROM t"};
    struct db_sql select = db_sql_make(
        text_of("SELECT count(*) FROM t WHERE b <> 'DELETE'"), DB_SCRIPT_READ);
    struct db_rows *rows;

    make_table(f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct db_sql sql = db_sql_make(text_of(bad[i]), DB_SCRIPT_READ);

        begin(f);
        assert_int_equal(db_query(f->db, &sql, NULL, 0, &rows, &f->diag),
                         STATUS_PERMANENT);
        assert_says(f, "only read");
        db_rollback(f->db);
    }
    begin(f);
    ok(f, db_query(f->db, &select, NULL, 0, &rows, &f->diag));
    db_rows_close(rows);
    insert_later(f, 1, 1); /* the host goes on writing */
    commit(f);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void a_script_that_fails_keeps_nothing_and_names_its_line(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(db_script(f->db,
                               text_of("CREATE TABLE one (a BIGINT);\n"
                                       "-- a comment; with a semicolon\n"
                                       "CREATE TABLE two (a BIGINT);\n\n"
                                       "CREATE TABLE two (a BIGINT);\n"),
                               DB_SCRIPT, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "line 5 of the script");
    assert_int_equal(try_run(f, f->db, "SELECT * FROM one"), STATUS_PERMANENT);
    assert_int_equal(
        db_script(f->db, text_of("CREATE TABLE one (a BIGINT); DROP TABLE one"),
                  DB_SCRIPT, &f->diag),
        STATUS_PERMANENT);
    assert_says(f, "DROP");
    ok(f, db_script(f->db, text_of("CREATE TABLE one (a BIGINT);"), DB_SCRIPT,
                    &f->diag));
    assert_int_equal(number(f, "SELECT count(*) FROM one"), 0);
}

static void a_script_inside_a_transaction_belongs_to_it(void **state)
{
    struct fixture *f = *state;

    begin(f);
    ok(f, db_script(f->db, text_of("CREATE TABLE one (a BIGINT);"), DB_HOST,
                    &f->diag));
    db_rollback(f->db);
    assert_int_equal(try_run(f, f->db, "SELECT * FROM one"), STATUS_PERMANENT);
}

static void a_statement_past_its_deadline_is_interrupted(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = script_sql(
        is_mariadb(f)
            ? "SELECT count(*) FROM seq_1_to_100000000 AS a,"
              " seq_1_to_100000000 AS b"
            : "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT 1 FROM n)"
              " SELECT count(*) FROM n");

    begin(f);
    db_deadline(f->db, clock_monotonic() + CLOCK_SECOND / 20);
    assert_int_equal(db_execute(f->db, &sql, NULL, 0, NULL, &f->diag),
                     STATUS_FAILED);
    assert_says(f, "time limit");
    db_deadline(f->db, 0);
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT 1"), 1);
}

/* MariaDB commits at each statement that makes a table. */
#define where_ddl_can_be_undone(test) on_sqlite(test), on_both_postgres(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_every_driver(rows_of_a_commit_stay_and_of_a_rollback_go),
        on_every_driver(after_a_failure_every_call_fails_alike),
        on_every_driver(outside_of_a_transaction_a_failure_does_not_stick),
        on_every_driver(savepoints_nest_and_end_a_failure),
        on_every_driver(a_rollback_to_drops_the_queue_behind_it),
        on_every_driver(more_savepoints_than_wait_at_once),
        on_every_driver(a_view_of_a_reader_does_not_move),
        on_every_driver(a_reader_cannot_write),
        on_every_driver(a_row_that_another_holds_is_a_conflict),
        on_every_driver(reopening_forgets_an_open_transaction),
        on_every_driver(integers_of_64_bits_stay_exact),
        on_every_driver(every_type_comes_back_as_it_went_in),
        on_every_driver(text_that_no_database_could_hold_is_refused),
        on_every_driver(a_value_of_another_type_fails_the_next_row),
        on_every_driver(several_results_may_be_open),
        on_every_driver(sums_of_integers_are_integers),
        on_every_driver(the_clock_of_the_database_is_near_ours),
        on_every_driver(scripts_may_not_touch_session_or_tables),
        on_every_driver(a_statement_that_may_only_read_cannot_write),
        where_ddl_can_be_undone(
            a_script_that_fails_keeps_nothing_and_names_its_line),
        where_ddl_can_be_undone(a_script_inside_a_transaction_belongs_to_it),
        on_every_driver(a_statement_past_its_deadline_is_interrupted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
