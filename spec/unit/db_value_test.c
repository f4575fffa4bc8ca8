/* Values into statements and out of results; the cache of statements. */
#include "db_support.h"

#include "base/clock.h"
#include <float.h>

static struct db_rows *query(struct fixture *f, const char *text,
                             const struct db_value *params, size_t nparams)
{
    struct db_sql sql = sql_of(text);
    struct db_rows *rows;

    ok(f, db_query(f->db, &sql, params, nparams, &rows, &f->diag));
    return rows;
}

static bool next(struct fixture *f, struct db_rows *rows)
{
    bool more;

    ok(f, db_next(rows, &more, &f->diag));
    return more;
}

static void integers_of_64_bits_stay_exact(void **state)
{
    struct fixture *f = *state;
    static const int64_t values[] = {
        INT64_MIN, INT64_MIN + 1,    INT64_MAX,        INT64_MAX - 1, -1,
        0,         9007199254740993, -9007199254740993};
    struct db_sql insert = sql_of("INSERT INTO t SELECT value FROM"
                                  " json_each(?1)");
    size_t count = sizeof(values) / sizeof(values[0]);
    struct db_value array = db_integers(values, count);
    struct db_rows *rows;

    run(f, "CREATE TABLE t (a)"); /* no affinity that could repair a REAL */
    ok(f, db_execute(f->db, &insert, &array, 1, NULL, &f->diag));
    rows = query(f, "SELECT a FROM t ORDER BY rowid", NULL, 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(next(f, rows));
        assert_int_equal(db_column_type(rows, 0), DB_INT64);
        assert_true(db_get_int64(rows, 0) == values[i]);
    }
    assert_false(next(f, rows));
    db_rows_close(rows);

    for (size_t i = 0; i < count; i++) {
        struct db_value param = db_integer(values[i]);

        rows = query(f, "SELECT ?1, typeof(?1) = 'integer'", &param, 1);
        assert_true(next(f, rows));
        assert_true(db_get_int64(rows, 0) == values[i]);
        assert_true(db_get_bool(rows, 1));
        db_rows_close(rows);
    }
}

static void every_type_comes_back_as_it_went_in(void **state)
{
    struct fixture *f = *state;
    static const char bytes[] = {0, 'a', (char)0xff, 0};
    struct uuid uuid;
    struct uuid got;
    struct db_value params[8];
    struct db_rows *rows;
    struct text text;

    assert_true(
        uuid_parse(text_of("0190A2B4-0000-7ABC-8DEF-0123456789AB"), &uuid));
    params[0] = db_null();
    params[1] = db_number(0.1);
    params[2] = db_boolean(true);
    params[3] = db_string("Gr\xc3\xb6\xc3\x9f"
                          "e");
    params[4] = db_bytes((struct text){bytes, sizeof(bytes)});
    params[5] = db_timestamp(1700000000123456);
    params[6] = db_uuid(uuid);
    params[7] = db_string("");
    rows = query(f, "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8", params, 8);
    assert_true(next(f, rows));
    assert_true(db_is_null(rows, 0));
    assert_null(db_get_text(rows, 0).data);
    assert_true(db_get_double(rows, 1) == 0.1);
    assert_true(db_get_bool(rows, 2));
    assert_true(text_equal(db_get_text(rows, 3), params[3].as.text));
    text = db_get_text(rows, 4);
    assert_int_equal(text.len, sizeof(bytes));
    assert_memory_equal(text.data, bytes, sizeof(bytes));
    assert_true(db_get_timestamp(rows, 5) == 1700000000123456);
    assert_true(text_equal(db_get_text(rows, 5),
                           text_of("2023-11-14T22:13:20.123456Z")));
    got = db_get_uuid(rows, 6);
    assert_true(uuid_equal(&got, &uuid));
    assert_true(text_equal(db_get_text(rows, 6),
                           text_of("0190a2b4-0000-7abc-8def-0123456789ab")));
    text = db_get_text(rows, 7);
    assert_non_null(text.data);
    assert_int_equal(text.len, 0);
    assert_false(next(f, rows));
    db_rows_close(rows);
}

static void a_query_does_not_borrow_its_parameters(void **state)
{
    struct fixture *f = *state;
    char word[] = "abc";
    struct db_value params[] = {db_string(word),
                                db_bytes((struct text){word, 3})};
    struct db_rows *rows = query(f, "SELECT ?1 = 'abc', ?2 = x'616263'", params,
                                 2);

    memset(word, 'x', 3);
    assert_true(next(f, rows));
    assert_true(db_get_bool(rows, 0));
    assert_true(db_get_bool(rows, 1));
    db_rows_close(rows);
}

static void arrays_carry_any_text(void **state)
{
    struct fixture *f = *state;
    const struct text items[] = {TEXT_LITERAL("a\"b\\c\n"),
                                 TEXT_LITERAL("\xe2\x82\xac"), TEXT_LITERAL(""),
                                 TEXT_NONE, TEXT_LITERAL("[1,2]")};
    struct db_value array = db_texts(items, 5);
    struct db_value empty = db_texts(NULL, 0);
    struct db_rows *rows;

    rows = query(f, "SELECT value FROM json_each(?1) ORDER BY key", &array, 1);
    for (size_t i = 0; i < 5; i++) {
        assert_true(next(f, rows));
        assert_true(db_is_null(rows, 0) == (items[i].data == NULL));
        assert_true(text_equal(db_get_text(rows, 0), items[i]));
    }
    assert_false(next(f, rows));
    db_rows_close(rows);
    rows = query(f, "SELECT value FROM json_each(?1)", &empty, 1);
    assert_false(next(f, rows));
    db_rows_close(rows);
}

static void text_that_no_database_could_hold_is_refused(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = script_sql("SELECT ?1");
    const struct text nul = TEXT_LITERAL("a\0b");
    struct db_value param = db_text_value(nul);
    struct db_value array = db_texts(&nul, 1);

    assert_int_equal(db_execute(f->db, &sql, &param, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "NUL");
    assert_int_equal(db_execute(f->db, &sql, &array, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
    param = db_string("\xc3(");
    assert_int_equal(db_execute(f->db, &sql, &param, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "UTF-8");
    param = db_number(DBL_MAX * 10 - DBL_MAX * 10);
    assert_int_equal(db_execute(f->db, &sql, &param, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
    param = db_timestamp(INT64_MAX);
    assert_int_equal(db_execute(f->db, &sql, &param, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
}

static void a_wrong_number_of_parameters_is_refused(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT ?1, ?2");
    struct db_value params[] = {db_integer(1), db_integer(2), db_integer(3)};

    assert_int_equal(db_execute(f->db, &sql, params, 1, NULL, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "2 parameters, but 1");
    assert_int_equal(db_execute(f->db, &sql, params, 3, NULL, &f->diag),
                     STATUS_PERMANENT);
    ok(f, db_execute(f->db, &sql, params, 2, NULL, &f->diag));
}

static void one_call_runs_one_statement(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    assert_int_equal(
        try_run(f, f->db, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"),
        STATUS_PERMANENT);
    assert_says(f, "one statement");
    assert_int_equal(try_run(f, f->db, " -- nothing"), STATUS_PERMANENT);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    run(f, "INSERT INTO t VALUES (1); -- and a comment\n ; /* more */ ");
}

static void a_value_of_another_type_fails_the_next_row(void **state)
{
    struct fixture *f = *state;
    struct db_rows *rows = query(
        f, "SELECT 'x' AS word, 2 AS two UNION ALL SELECT 'y', 3", NULL, 0);
    bool more;

    assert_true(next(f, rows));
    assert_int_equal(db_get_int64(rows, 0), 0);
    assert_int_equal(db_get_int64(rows, 1), 2);
    assert_int_equal(db_next(rows, &more, &f->diag), STATUS_PERMANENT);
    assert_says(f, "\"word\"");
    assert_says(f, "an integer");
    db_rows_close(rows);
}

static void
a_wrong_type_dooms_the_transaction_even_when_rows_are_closed(void **state)
{
    struct fixture *f = *state;
    struct db_rows *rows;

    begin(f);
    rows = query(f, "SELECT 'x' AS word", NULL, 0);
    assert_true(next(f, rows));
    assert_false(db_get_bool(rows, 0));
    db_rows_close(rows);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_PERMANENT);
    assert_says(f, "\"word\"");
}

static void a_number_that_is_text_or_null_or_real_is_no_integer(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"SELECT '1'", "SELECT 1.0",
                                      "SELECT x'31'"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct db_sql sql = sql_of(bad[i]);
        int64_t value;
        bool found;

        assert_int_equal(
            db_query_int64(f->db, &sql, NULL, 0, &value, &found, &f->diag),
            STATUS_PERMANENT);
    }
    assert_true(number(f, "SELECT NULL") == INT64_MIN);
    assert_true(number(f, "SELECT 1 WHERE 0") == INT64_MIN);
}

static void several_results_may_be_open(void **state)
{
    struct fixture *f = *state;
    static const char text[] = "SELECT 1 UNION ALL SELECT 2";
    struct db_rows *a = query(f, text, NULL, 0);
    struct db_rows *b = query(f, text, NULL, 0);

    assert_true(next(f, a));
    assert_true(next(f, b));
    assert_true(next(f, b));
    assert_int_equal(db_get_int64(a, 0), 1);
    assert_int_equal(db_get_int64(b, 0), 2);
    db_rows_close(a);
    assert_false(next(f, b));
    db_rows_close(b);
}

static void a_result_ends_with_its_transaction(void **state)
{
    struct fixture *f = *state;
    struct db_rows *rows;
    bool more;

    begin(f);
    rows = query(f, "SELECT 1 UNION ALL SELECT 2", NULL, 0);
    assert_true(next(f, rows));
    commit(f);
    assert_int_equal(db_next(rows, &more, &f->diag), STATUS_PERMANENT);
    db_rows_close(rows);
}

static void many_statements_do_not_fill_the_memory(void **state)
{
    struct fixture *f = *state;
    struct db_rows *open = query(f, "SELECT 1 UNION ALL SELECT 2", NULL, 0);
    int used[2];
    int peak;
    char text[64];

    assert_true(next(f, open));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(text, sizeof(text), "SELECT %d", 1000 * round + i);
            assert_int_equal(number(f, text), 1000 * round + i);
        }
        sqlite3_status(SQLITE_STATUS_MEMORY_USED, &used[round], &peak, 0);
    }
    /* 1,000 statements more need nothing more */
    assert_in_range(used[1], 0, used[0] + 65536);
    assert_true(next(f, open)); /* it was not taken from its user */
    assert_int_equal(db_get_int64(open, 0), 2);
    db_rows_close(open);
}

/* 0 when nobody's snapshot kept the log from being copied back. */
static int64_t log_is_held(struct fixture *f)
{
    sqlite3 *raw = raw_open(f);
    sqlite3_stmt *handle;
    int64_t busy;

    assert_int_equal(sqlite3_prepare_v2(raw, "PRAGMA wal_checkpoint(TRUNCATE)",
                                        -1, &handle, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(handle), SQLITE_ROW);
    busy = sqlite3_column_int64(handle, 0);
    sqlite3_finalize(handle);
    sqlite3_close(raw);
    return busy;
}

static void a_closed_result_holds_no_snapshot(void **state)
{
    struct fixture *f = *state;
    struct db_rows *rows;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    run(f, "INSERT INTO t VALUES (1), (2), (3)");
    rows = query(f, "SELECT a FROM t", NULL, 0);
    assert_true(next(f, rows));
    run(f, "INSERT INTO t VALUES (4)");
    assert_int_equal(log_is_held(f), 1); /* an open one does */
    db_rows_close(rows);
    assert_int_equal(log_is_held(f), 0);
}

static void a_result_read_to_its_end_holds_no_snapshot(void **state)
{
    struct fixture *f = *state;
    struct db_rows *rows;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    run(f, "INSERT INTO t VALUES (1)");
    rows = query(f, "SELECT a FROM t", NULL, 0);
    assert_true(next(f, rows));
    assert_false(next(f, rows));
    run(f, "INSERT INTO t VALUES (2)");
    assert_int_equal(log_is_held(f), 0);
    db_rows_close(rows);
}

static void the_end_of_a_transaction_frees_a_forgotten_result(void **state)
{
    struct fixture *f = *state;
    struct db_rows *rows;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    run(f, "INSERT INTO t VALUES (1), (2)");
    begin(f);
    rows = query(f, "SELECT a FROM t", NULL, 0);
    assert_true(next(f, rows));
    commit(f);
    run(f, "INSERT INTO t VALUES (3)");
    assert_int_equal(log_is_held(f), 0);
    db_rows_close(rows);
}

static void the_clock_of_the_database_is_the_machines(void **state)
{
    struct fixture *f = *state;
    int64_t before = clock_now(NULL);
    int64_t now_us;

    ok(f, db_now(f->db, &now_us, &f->diag));
    assert_in_range(now_us, before, clock_now(NULL));
}

static void every_statement_run_is_counted(void **state)
{
    struct fixture *f = *state;
    int64_t before = db_round_trips(f->db);

    assert_int_equal(number(f, "SELECT 1"), 1);
    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    assert_int_equal(db_round_trips(f->db) - before, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_database(integers_of_64_bits_stay_exact),
        with_database(every_type_comes_back_as_it_went_in),
        with_database(a_query_does_not_borrow_its_parameters),
        with_database(arrays_carry_any_text),
        with_database(text_that_no_database_could_hold_is_refused),
        with_database(a_wrong_number_of_parameters_is_refused),
        with_database(one_call_runs_one_statement),
        with_database(a_value_of_another_type_fails_the_next_row),
        with_database(
            a_wrong_type_dooms_the_transaction_even_when_rows_are_closed),
        with_database(a_number_that_is_text_or_null_or_real_is_no_integer),
        with_database(several_results_may_be_open),
        with_database(a_result_ends_with_its_transaction),
        with_database(many_statements_do_not_fill_the_memory),
        with_database(a_closed_result_holds_no_snapshot),
        with_database(a_result_read_to_its_end_holds_no_snapshot),
        with_database(the_end_of_a_transaction_frees_a_forgotten_result),
        with_database(the_clock_of_the_database_is_the_machines),
        with_database(every_statement_run_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
