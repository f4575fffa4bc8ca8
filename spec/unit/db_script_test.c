/* What statements of scripts may do, and scripts of several statements. */
#include "db_support.h"

#include "base/clock.h"

static const char *const forbidden[] = {
    "PRAGMA foreign_keys = OFF",
    "PRAGMA journal_mode",
    "ATTACH 'x.db' AS x",
    "DETACH main",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "RELEASE a",
    "ROLLBACK TO a",
    "VACUUM",
    "VACUUM INTO 'copy.db'",
    "ANALYZE",
    "REINDEX",
    "CREATE TEMP TABLE x (a)",
    "CREATE TEMP VIEW x AS SELECT 1",
    "DROP TABLE t",
    "DROP INDEX t_a",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t ADD COLUMN b",
    "SELECT load_extension('x')",
};

static const char *const creating[] = {
    "CREATE TABLE x (a)",
    "CREATE TABLE IF NOT EXISTS x AS SELECT 1",
    "CREATE INDEX x ON t (a)",
    "CREATE VIEW x AS SELECT 1",
    "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
};

static void make_indexed_table(struct fixture *f)
{
    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    run(f, "CREATE INDEX t_a ON t (a)");
    run(f, "INSERT INTO t VALUES (1)");
}

static void refused(struct fixture *f, const char *text)
{
    struct db_sql sql = script_sql(text);

    if (db_execute(f->db, &sql, NULL, 0, NULL, &f->diag) != STATUS_PERMANENT)
        fail_msg("not refused: %s", text);
    assert_says(f, "a script may not run");
}

static void scripts_may_not_touch_session_or_tables(void **state)
{
    struct fixture *f = *state;
    int64_t objects;

    make_indexed_table(f);
    objects = number(f, "SELECT count(*) FROM sqlite_schema");
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        refused(f, forbidden[i]);
    for (size_t i = 0; i < sizeof(creating) / sizeof(creating[0]); i++)
        refused(f, creating[i]);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema"), objects);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_temp_schema"), 0);
    assert_int_equal(number(f, "PRAGMA foreign_keys"), 1);
}

static void a_refused_statement_dooms_its_transaction(void **state)
{
    struct fixture *f = *state;

    make_indexed_table(f);
    begin(f);
    commit(f); /* the host's own COMMIT is prepared, and no way around */
    begin(f);
    run(f, "INSERT INTO t VALUES (2)");
    refused(f, "COMMIT");
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_PERMANENT);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void scripts_may_read_and_write_rows(void **state)
{
    struct fixture *f = *state;
    static const char *const good[] = {
        "INSERT INTO t VALUES (5)",
        "UPDATE t SET a = 6 WHERE a = 5",
        "DELETE FROM t WHERE a = 6",
        "SELECT a FROM t UNION ALL SELECT 2",
        "SELECT json_extract('[1]', '$[0]'), upper('x')",
    };

    make_indexed_table(f);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct db_sql sql = script_sql(good[i]);

        ok(f, db_execute(f->db, &sql, NULL, 0, NULL, &f->diag));
    }
}

static void a_statement_that_may_only_read_cannot_write(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "INSERT INTO t VALUES (2) RETURNING a",
        "UPDATE t SET a = 3 RETURNING a",
        "DELETE FROM t RETURNING a",
        "PRAGMA foreign_keys",
    };
    struct db_rows *rows;
    struct db_sql sql;

    make_indexed_table(f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sql = db_sql_make(text_of(bad[i]), DB_SCRIPT_READ);
        assert_int_equal(db_query(f->db, &sql, NULL, 0, &rows, &f->diag),
                         STATUS_PERMANENT);
        assert_says(f, "may only read");
    }
    sql = db_sql_make(text_of("SELECT a FROM t"), DB_SCRIPT_READ);
    ok(f, db_query(f->db, &sql, NULL, 0, &rows, &f->diag));
    db_rows_close(rows);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 1);
}

static enum status run_script(struct fixture *f, const char *text,
                              enum db_origin origin)
{
    return db_script(f->db, text_of(text), origin, &f->diag);
}

static void
a_tables_script_creates_tables_indexes_views_and_triggers(void **state)
{
    struct fixture *f = *state;
    static const char text[] =
        "-- turnover\n"
        "CREATE TABLE IF NOT EXISTS d (day TEXT PRIMARY KEY, n INTEGER)"
        " STRICT;\n"
        "CREATE INDEX IF NOT EXISTS d_n ON d (n);\n"
        "CREATE VIEW IF NOT EXISTS v AS SELECT * FROM d;\n"
        "CREATE TRIGGER IF NOT EXISTS g AFTER INSERT ON d BEGIN\n"
        "  UPDATE d SET n = 7; END;\n"
        "/* the end */";

    ok(f, run_script(f, text, DB_SCRIPT));
    ok(f, run_script(f, text, DB_SCRIPT)); /* again: nothing to do */
    run(f, "INSERT INTO d VALUES ('x', 1)");
    assert_int_equal(number(f, "SELECT n FROM v"), 7);
}

static void a_tables_script_may_do_nothing_else_to_the_connection(void **state)
{
    struct fixture *f = *state;
    char text[256];

    make_indexed_table(f);
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (strcmp(forbidden[i], "REINDEX") == 0)
            continue; /* part of CREATE INDEX, and harmless */
        snprintf(text, sizeof(text), "CREATE TABLE x (a);\n%s;", forbidden[i]);
        if (run_script(f, text, DB_SCRIPT) != STATUS_PERMANENT)
            fail_msg("not refused: %s", forbidden[i]);
        assert_says(f, "line 2 of the script");
    }
    assert_int_equal(
        number(f, "SELECT count(*) FROM sqlite_schema WHERE name = 'x'"), 0);
}

static void a_script_that_fails_keeps_nothing_and_names_its_line(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run_script(f,
                                "CREATE TABLE a (x);\n\n-- here\n\n"
                                "CREATE TABL b (x);\n",
                                DB_HOST),
                     STATUS_PERMANENT);
    assert_says(f, "line 5");
    assert_says(f, "syntax error");
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema"), 0);
    assert_int_equal(run_script(f, "CREATE TABLE a (", DB_HOST),
                     STATUS_PERMANENT);
}

static void a_script_inside_a_transaction_belongs_to_it(void **state)
{
    struct fixture *f = *state;

    begin(f);
    ok(f, run_script(f, "CREATE TABLE a (x); CREATE TABLE b (x);", DB_HOST));
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema"), 0);
    ok(f, run_script(f, "", DB_HOST));
    ok(f, run_script(f, " ; -- nothing", DB_HOST));
}

static void statements_survive_a_change_of_the_schema(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = script_sql("SELECT * FROM t");
    struct db_rows *rows;

    make_indexed_table(f);
    for (int i = 0; i < 3; i++) {
        char text[64];

        ok(f, db_query(f->db, &sql, NULL, 0, &rows, &f->diag));
        db_rows_close(rows);
        snprintf(text, sizeof(text), "ALTER TABLE t ADD COLUMN c%d TEXT", i);
        run(f, text);
    }
}

static void a_statement_past_its_deadline_is_interrupted(void **state)
{
    struct fixture *f = *state;
    struct db_sql endless = script_sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT count(*) FROM n");

    make_indexed_table(f);
    begin(f);
    db_deadline(f->db, clock_monotonic() + 20000);
    assert_int_equal(db_execute(f->db, &endless, NULL, 0, NULL, &f->diag),
                     STATUS_FAILED);
    assert_says(f, "time limit");
    db_deadline(f->db, 0);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_FAILED);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_database(scripts_may_not_touch_session_or_tables),
        with_database(a_refused_statement_dooms_its_transaction),
        with_database(scripts_may_read_and_write_rows),
        with_database(a_statement_that_may_only_read_cannot_write),
        with_database(
            a_tables_script_creates_tables_indexes_views_and_triggers),
        with_database(a_tables_script_may_do_nothing_else_to_the_connection),
        with_database(a_script_that_fails_keeps_nothing_and_names_its_line),
        with_database(a_script_inside_a_transaction_belongs_to_it),
        with_database(statements_survive_a_change_of_the_schema),
        with_database(a_statement_past_its_deadline_is_interrupted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
