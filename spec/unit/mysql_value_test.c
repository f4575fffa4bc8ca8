/* Values to and from MariaDB, results, and the tables of a shape. */
#include "mysql_support.h"

#include "base/hash.h"

static void integers_of_64_bits_stay_exact(void **state)
{
    struct fixture *f = begin_test(state);
    static const int64_t values[] = {
        0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(9007199254740993)};
    struct db_sql back = sql_of("SELECT ?1");

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct db_value param = db_integer(values[i]);
        int64_t value;
        bool found;

        ok(f,
           db_query_int64(f->db, &back, &param, 1, &value, &found, &f->diag));
        assert_true(found);
        assert_true(value == values[i]);
    }
    assert_int_equal(number(f, "SELECT CAST(sum(n) AS DECIMAL(30)) FROM"
                               " (SELECT 9007199254740993 AS n) AS x"),
                     INT64_C(9007199254740993));
}

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

static void assert_text(struct db_rows *rows, size_t column, const char *wanted)
{
    struct text text = db_get_text(rows, column);

    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
}

static void every_type_comes_back_as_it_went_in(void **state)
{
    struct fixture *f = begin_test(state);
    struct uuid id;
    char bytes[256];
    struct db_value params[9];
    struct db_rows *rows;
    struct db_sql sql = sql_of(
        "INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    assert_true(
        uuid_parse(text_of("0190f1d2-0000-7000-8000-00000000000a"), &id));
    raw_run(f, "CREATE TABLE t (a LONGTEXT CHARACTER SET utf8mb4, b LONGBLOB,"
               " c DOUBLE, d TINYINT, e DATETIME(6), f CHAR(36),"
               " g DECIMAL(30,10), h BIGINT, i TIME(6)) ENGINE = InnoDB");
    params[0] = db_string("na\xc3\xafve \xf0\x9f\x98\x80 \\ ' \" ` ? ;");
    params[1] = db_bytes((struct text){bytes, sizeof(bytes)});
    params[2] = db_number(0.1);
    params[3] = db_boolean(true);
    params[4] = db_timestamp(INT64_C(1769847300123456));
    params[5] = db_uuid(id);
    params[6] = db_decimal(TEXT_LITERAL("-12345678901234567890.0123456789"));
    params[7] = db_null();
    params[8] = db_string("08:15:00.25");
    ok(f, db_execute(f->db, &sql, params, 9, NULL, &f->diag));
    rows = query(f, "SELECT * FROM t", NULL, 0);
    assert_true(next(f, rows));
    assert_text(rows, 0, params[0].as.text.data);
    assert_int_equal(db_column_type(rows, 1), DB_BYTES);
    assert_int_equal(db_get_text(rows, 1).len, 256);
    assert_memory_equal(db_get_text(rows, 1).data, bytes, 256);
    assert_true(db_get_double(rows, 2) == 0.1);
    assert_true(db_get_bool(rows, 3));
    assert_int_equal(db_column_type(rows, 4), DB_TIMESTAMP);
    assert_int_equal(db_get_timestamp(rows, 4), INT64_C(1769847300123456));
    assert_text(rows, 4, "2026-01-31T08:15:00.123456Z");
    assert_memory_equal(db_get_uuid(rows, 5).bytes, id.bytes, 16);
    assert_int_equal(db_column_type(rows, 6), DB_DECIMAL);
    assert_text(rows, 6, "-12345678901234567890.0123456789");
    assert_true(db_is_null(rows, 7));
    assert_text(rows, 8, "08:15:00.250000");
    assert_string_equal(db_column_name(rows, 6), "g");
    assert_false(next(f, rows));
    db_rows_close(rows);
}

static void times_of_all_years_come_back(void **state)
{
    struct fixture *f = begin_test(state);
    static const char *const times[] = {
        "1970-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.999999Z",
        "2000-02-29T12:00:00.000001Z", "1900-03-01T00:00:00.000000Z",
        "9999-12-31T23:59:59.999999Z", "1000-01-01T00:00:00.000000Z",
        "2024-02-29T23:59:59.000000Z",
    };

    raw_run(f, "CREATE TABLE t (e DATETIME(6)) ENGINE = InnoDB");
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct db_sql sql = sql_of("INSERT INTO t VALUES (?1)");
        struct db_value param;
        struct db_rows *rows;
        int64_t time_us;

        ok(f, clock_parse(text_of(times[i]), &time_us, &f->diag));
        param = db_timestamp(time_us);
        run(f, "DELETE FROM t");
        ok(f, db_execute(f->db, &sql, &param, 1, NULL, &f->diag));
        rows = query(f, "SELECT e FROM t WHERE e = ?1", &param, 1);
        assert_true(next(f, rows));
        assert_int_equal(db_get_timestamp(rows, 0), time_us);
        db_rows_close(rows);
    }
}

/* TX-17: what fits into no buffer made beforehand. */
static void texts_of_any_size_come_back_whole_in_any_order(void **state)
{
    struct fixture *f = begin_test(state);
    static const size_t sizes[] = {7,       16000000, 0, 65536, 1,    255,
                                   1000000, 8,        9, 256,   65535};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    size_t largest = 16000000;
    char *text = malloc(largest);
    struct db_sql sql = sql_of("INSERT INTO t VALUES (?1, ?2, ?3)");
    struct db_rows *rows;

    assert_non_null(text);
    for (size_t i = 0; i < largest; i++)
        text[i] = (char)('a' + i % 23);
    raw_run(f, "CREATE TABLE t (n INT PRIMARY KEY, a LONGTEXT, b LONGTEXT)"
               " ENGINE = InnoDB");
    for (int i = 0; i < COUNT; i++) {
        struct db_value params[] = {
            db_integer(i),
            db_text_value((struct text){text + i, sizes[i] - (sizes[i] > 0)}),
            i % 2 == 0 ? db_null() : db_string("between"),
        };

        ok(f, db_execute(f->db, &sql, params, 3, NULL, &f->diag));
    }
    for (int again = 0; again < 2; again++) {
        rows = query(f, "SELECT n, b, a FROM t ORDER BY n", NULL, 0);
        for (int i = 0; i < COUNT; i++) {
            struct text wanted = {text + i, sizes[i] - (sizes[i] > 0)};

            assert_true(next(f, rows));
            assert_int_equal(db_is_null(rows, 1), i % 2 == 0);
            assert_true(text_equal(db_get_text(rows, 2), wanted));
        }
        assert_false(next(f, rows));
        db_rows_close(rows);
    }
    free(text);
}

static void arrays_carry_any_text(void **state)
{
    struct fixture *f = begin_test(state);
    struct text items[] = {
        TEXT_LITERAL("plain"),    TEXT_LITERAL("\"quote\" \\ /"),
        TEXT_LITERAL("\x01\n\t"), TEXT_LITERAL("\xf0\x9f\x98\x80"),
        TEXT_LITERAL(""),         TEXT_LITERAL("true"),
        TEXT_LITERAL("12"),       TEXT_LITERAL("trailing "),
    };
    size_t count = sizeof(items) / sizeof(items[0]);
    struct db_value param = db_texts(items, count);
    struct db_rows *rows = query(
        f,
        "SELECT v FROM JSON_TABLE(?1, '$[*]' COLUMNS (n FOR ORDINALITY,"
        " v VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        " PATH '$')) AS j ORDER BY n",
        &param, 1);

    for (size_t i = 0; i < count; i++) {
        assert_true(next(f, rows));
        assert_true(text_equal(db_get_text(rows, 0), items[i]));
    }
    assert_false(next(f, rows));
    db_rows_close(rows);
}

static void parameters_of_other_types_give_results_of_other_types(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_value params[] = {db_integer(5), db_string("five"), db_null(),
                                db_number(5.5)};
    static const enum db_type types[] = {DB_INT64, DB_TEXT, DB_NULL, DB_DOUBLE};

    for (int i = 0; i < 8; i++) {
        struct db_rows *rows = query(f, "SELECT ?1", &params[i % 4], 1);

        assert_true(next(f, rows));
        assert_int_equal(db_column_type(rows, 0), types[i % 4]);
        db_rows_close(rows);
    }
}

static void text_that_no_database_could_hold_is_refused(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_sql sql = script_sql("SELECT ?");
    struct db_value params[] = {
        db_text_value((struct text){"a\0b", 3}),
        db_string("\xff"),
        db_number(1.0 / 0.0 * 0.0),
    };
    struct db_rows *rows;

    for (size_t i = 0; i < 3; i++)
        assert_int_equal(db_query(f->db, &sql, &params[i], 1, &rows, &f->diag),
                         STATUS_PERMANENT);
}

static void one_call_runs_one_statement(void **state)
{
    struct fixture *f = begin_test(state);

    raw_run(f, "CREATE TABLE t (a INT) ENGINE = InnoDB");
    assert_int_equal(
        try_run(f, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"),
        STATUS_PERMANENT);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 0);
}

static void a_value_of_another_type_fails_the_next_row(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_rows *rows = query(f, "SELECT 'x', 1", NULL, 0);
    bool more;

    assert_true(next(f, rows));
    assert_int_equal(db_get_int64(rows, 0), 0);
    assert_int_equal(db_next(rows, &more, &f->diag), STATUS_PERMANENT);
    assert_says(f, "\"x\"");
    db_rows_close(rows);
    rows = query(f, "SELECT NULL, 18446744073709551615", NULL, 0);
    assert_true(next(f, rows));
    assert_text(rows, 1, "18446744073709551615");
    (void)db_get_int64(rows, 1);
    assert_int_equal(db_next(rows, &more, &f->diag), STATUS_PERMANENT);
    db_rows_close(rows);
}

static void several_results_may_be_open(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_rows *first, *second;

    begin(f);
    first = query(f, "SELECT seq FROM seq_1_to_3", NULL, 0);
    second = query(f, "SELECT seq FROM seq_1_to_3", NULL, 0);
    for (int i = 1; i <= 3; i++) {
        assert_true(next(f, first));
        assert_true(next(f, second));
        assert_int_equal(db_get_int64(first, 0), i);
        assert_int_equal(db_get_int64(second, 0), i);
        assert_int_equal(number(f, "SELECT 7"), 7);
    }
    db_rows_close(first);
    assert_false(next(f, second));
    db_rows_close(second);
    commit(f);
}

static void a_row_in_hand_stays_while_other_statements_run(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_rows *rows;
    struct text held;

    begin(f);
    rows = query(f,
                 "SELECT seq, repeat(char(96 + seq), 100000 * seq) FROM"
                 " seq_1_to_5",
                 NULL, 0);
    assert_true(next(f, rows));
    held = db_get_text(rows, 1);
    assert_int_equal(number(f, "SELECT 7"), 7);
    ok(f, db_savepoint(f->db, &f->diag));
    assert_int_equal(held.len, 100000);
    assert_int_equal(held.data[99999], 'a');
    for (int i = 2; i <= 5; i++) {
        assert_true(next(f, rows));
        assert_int_equal(db_get_int64(rows, 0), i);
        held = db_get_text(rows, 1);
        assert_int_equal(held.len, 100000 * i);
        assert_int_equal(held.data[held.len - 1], 'a' + i - 1);
    }
    assert_false(next(f, rows));
    db_rows_close(rows);
    commit(f);
}

static void a_result_that_is_left_early_disturbs_nothing(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_rows *rows;

    begin(f);
    for (int i = 0; i < 3; i++) {
        rows = query(f, "SELECT seq FROM seq_1_to_100000", NULL, 0);
        assert_true(next(f, rows));
        db_rows_close(rows);
        assert_int_equal(number(f, "SELECT 7"), 7);
    }
    commit(f);
}

static void an_error_behind_the_first_rows_is_told_when_it_is_met(void **state)
{
    struct fixture *f = begin_test(state);
    static const char text[] =
        "SELECT IF(seq < 5000, seq, (SELECT a FROM t)) FROM seq_1_to_5001";
    struct db_rows *rows;
    bool more = true;
    int count = 0;

    raw_run(f, "CREATE TABLE t (a INT) ENGINE = InnoDB");
    raw_run(f, "INSERT INTO t VALUES (1), (2)");
    for (int settled = 0; settled < 2; settled++) {
        enum status status = STATUS_OK;

        begin(f);
        more = true;
        count = 0;
        {
            struct db_sql sql = sql_of(text);

            status = db_query(f->db, &sql, NULL, 0, &rows, &f->diag);
        }
        if (status == STATUS_OK) {
            if (settled == 1)
                assert_int_equal(number(f, "SELECT 7"), 7);
            while ((status = db_next(rows, &more, &f->diag)) == STATUS_OK &&
                   more)
                count++;
            db_rows_close(rows);
        }
        assert_int_equal(status, STATUS_PERMANENT);
        assert_says(f, "1242");
        db_rollback(f->db);
    }
}

static void a_statement_that_only_writes_has_an_empty_result(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_rows *rows;

    raw_run(f, "CREATE TABLE t (a INT) ENGINE = InnoDB");
    rows = query(f, "INSERT INTO t VALUES (1)", NULL, 0);
    assert_int_equal(db_columns(rows), 0);
    assert_false(next(f, rows));
    db_rows_close(rows);
    rows = query(f, "INSERT INTO t VALUES (2) RETURNING a", NULL, 0);
    assert_true(next(f, rows));
    assert_int_equal(db_get_int64(rows, 0), 2);
    db_rows_close(rows);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 2);
}

static void a_result_ends_with_its_transaction(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_rows *rows;
    bool more;

    begin(f);
    rows = query(f, "SELECT seq FROM seq_1_to_3", NULL, 0);
    assert_true(next(f, rows));
    commit(f);
    assert_int_equal(db_next(rows, &more, &f->diag), STATUS_PERMANENT);
    db_rows_close(rows);
}

static void many_statements_do_not_fill_the_server(void **state)
{
    struct fixture *f = begin_test(state);
    char text[64];

    for (int i = 0; i < 600; i++) {
        snprintf(text, sizeof(text), "SELECT %d", i);
        assert_int_equal(number(f, text), i);
    }
    assert_true(raw_number(f, "SELECT @@max_prepared_stmt_count") > 600);
    assert_true(number(f, "SELECT CAST(sum(IF(variable_name ="
                          " 'Com_stmt_close', -1, 1) * variable_value)"
                          " AS SIGNED) FROM information_schema.session_status"
                          " WHERE variable_name IN ('Com_stmt_prepare',"
                          " 'Com_stmt_close')") <= 130);
}

static void statements_survive_a_change_of_the_schema(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_rows *rows;

    raw_run(f, "CREATE TABLE t (a INT) ENGINE = InnoDB");
    raw_run(f, "INSERT INTO t VALUES (1)");
    assert_int_equal(number(f, "SELECT * FROM t"), 1);
    raw_run(f, "ALTER TABLE t ADD COLUMN b VARCHAR(10) DEFAULT 'x'");
    for (int tries = 0; tries < 3; tries++) {
        struct db_sql sql = sql_of("SELECT * FROM t");
        enum status status = db_query(f->db, &sql, NULL, 0, &rows, &f->diag);

        if (status == STATUS_CONFLICT)
            continue;
        ok(f, status);
        assert_true(next(f, rows));
        assert_int_equal(db_columns(rows), 2);
        assert_text(rows, 1, "x");
        db_rows_close(rows);
        return;
    }
    fail_msg("%s", f->diag.message);
}

/* --- shapes --------------------------------------------------------------- */

static const struct db_shape_column all_columns[] = {
    {.name = "key_of", .kind = DB_KIND_KEY, .not_null = true, .primary = true},
    {.name = "text_of", .kind = DB_KIND_TEXT, .indexed = true, .unique = true},
    {.name = "document", .kind = DB_KIND_DOCUMENT, .not_null = true},
    {.name = "number_of", .kind = DB_KIND_INTEGER, .indexed = true},
    {.name = "real_of", .kind = DB_KIND_DOUBLE},
    {.name = "money", .kind = DB_KIND_DECIMAL, .precision = 19, .scale = 4},
    {.name = "flag", .kind = DB_KIND_BOOLEAN},
    {.name = "day", .kind = DB_KIND_DATE},
    {.name = "hour_of", .kind = DB_KIND_TIME},
    {.name = "instant", .kind = DB_KIND_TIMESTAMP},
    {.name = "uuid_of", .kind = DB_KIND_UUID, .indexed = true},
    {.name = "bytes", .kind = DB_KIND_BYTES, .indexed = true},
};
#define ALL_COLUMNS (sizeof(all_columns) / sizeof(all_columns[0]))

static void a_created_table_comes_back_as_its_shape(void **state)
{
    struct fixture *f = begin_test(state);
    const struct db_shape shape = {"Shaped", all_columns, ALL_COLUMNS};
    struct arena arena = ARENA_EMPTY;
    struct db_shape found;
    bool exists;

    ok(f, db_create_table(f->db, &shape, &f->diag));
    ok(f,
       db_describe_table(f->db, "Shaped", &arena, &found, &exists, &f->diag));
    assert_true(exists);
    assert_int_equal(found.ncolumns, ALL_COLUMNS);
    for (size_t i = 0; i < ALL_COLUMNS; i++) {
        const struct db_shape_column *wanted = &all_columns[i];
        const struct db_shape_column *actual = &found.columns[i];

        assert_string_equal(actual->name, wanted->name);
        if (db_column_fits(f->db, wanted, actual) != NULL)
            fail_msg("%s is %s", wanted->name, actual->declared);
        assert_int_equal(actual->not_null, wanted->not_null);
        assert_int_equal(actual->primary, wanted->primary);
        assert_int_equal(actual->unique, wanted->unique);
        assert_int_equal(actual->indexed, wanted->indexed);
    }
    ok(f,
       db_describe_table(f->db, "shaped", &arena, &found, &exists, &f->diag));
    assert_false(exists);
    arena_free(&arena);
}

static void a_column_that_cannot_hold_every_value_does_not_fit(void **state)
{
    struct fixture *f = begin_test(state);
    struct arena arena = ARENA_EMPTY;
    struct db_shape found;
    bool exists;

    raw_run(f, "CREATE TABLE w ("
               " key_of VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,"
               " text_of VARCHAR(100) CHARACTER SET utf8mb4"
               "   COLLATE utf8mb4_nopad_bin,"
               " document TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,"
               " number_of INT, real_of FLOAT, money DECIMAL(19,2),"
               " flag CHAR(1), day VARCHAR(10), hour_of TIME,"
               " instant DATETIME, uuid_of CHAR(35), bytes BLOB)");
    ok(f, db_describe_table(f->db, "w", &arena, &found, &exists, &f->diag));
    assert_int_equal(found.ncolumns, ALL_COLUMNS);
    for (size_t i = 0; i < ALL_COLUMNS; i++)
        assert_non_null(
            db_column_fits(f->db, &all_columns[i], &found.columns[i]));
    raw_run(f, "CREATE TABLE c (key_of VARCHAR(300) CHARACTER SET utf8mb4"
               " COLLATE utf8mb4_general_nopad_ci, money DECIMAL(24,4))");
    ok(f, db_describe_table(f->db, "c", &arena, &found, &exists, &f->diag));
    assert_non_null(db_column_fits(f->db, &all_columns[0], &found.columns[0]));
    assert_non_null(db_column_fits(f->db, &all_columns[1], &found.columns[0]));
    assert_null(db_column_fits(f->db, &all_columns[5], &found.columns[1]));
    arena_free(&arena);
}

static void only_a_whole_index_of_one_column_makes_it_unique(void **state)
{
    struct fixture *f = begin_test(state);
    struct arena arena = ARENA_EMPTY;
    struct db_shape found;
    bool exists;

    raw_run(f, "CREATE TABLE u (a VARCHAR(50), b INT, c INT, d INT,"
               " UNIQUE KEY (a(10)), UNIQUE KEY (b, c), UNIQUE KEY (d),"
               " KEY (c))");
    ok(f, db_describe_table(f->db, "u", &arena, &found, &exists, &f->diag));
    assert_false(found.columns[0].unique);
    assert_false(found.columns[1].unique);
    assert_false(found.columns[2].unique);
    assert_true(found.columns[2].indexed);
    assert_true(found.columns[3].unique);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(integers_of_64_bits_stay_exact),
        with_server(every_type_comes_back_as_it_went_in),
        with_server(times_of_all_years_come_back),
        with_server(texts_of_any_size_come_back_whole_in_any_order),
        with_server(arrays_carry_any_text),
        with_server(parameters_of_other_types_give_results_of_other_types),
        with_server(text_that_no_database_could_hold_is_refused),
        with_server(one_call_runs_one_statement),
        with_server(a_value_of_another_type_fails_the_next_row),
        with_server(several_results_may_be_open),
        with_server(a_row_in_hand_stays_while_other_statements_run),
        with_server(a_result_that_is_left_early_disturbs_nothing),
        with_server(an_error_behind_the_first_rows_is_told_when_it_is_met),
        with_server(a_statement_that_only_writes_has_an_empty_result),
        with_server(a_result_ends_with_its_transaction),
        with_server(many_statements_do_not_fill_the_server),
        with_server(statements_survive_a_change_of_the_schema),
        with_server(a_created_table_comes_back_as_its_shape),
        with_server(a_column_that_cannot_hold_every_value_does_not_fit),
        with_server(only_a_whole_index_of_one_column_makes_it_unique),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
