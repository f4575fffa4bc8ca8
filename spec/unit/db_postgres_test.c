/* What only a PostgreSQL server can do, or do wrong. */
#include "db_support.h"

#include "db/catalog.h"
#include "db/shape.h"

static int64_t trips(struct fixture *f)
{
    return db_round_trips(f->db);
}

static void a_transaction_of_queued_statements_is_one_round_trip(void **state)
{
    struct fixture *f = *state;
    int64_t before;

    make_table(f);
    before = trips(f);
    begin(f);
    for (int i = 0; i < 100; i++)
        insert_later(f, i, i);
    ok(f, db_savepoint(f->db, &f->diag));
    assert_int_equal(trips(f), before + 1); /* the queue is sent first */
    insert_later(f, 200, 200);
    ok(f, db_release(f->db, &f->diag));
    insert_later(f, 201, 201);
    commit(f);
    assert_int_equal(trips(f), before + 3);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 102);
}

static enum status ignore_row(void *arg, size_t index, struct db_rows *row,
                              struct diag *diag)
{
    (void)arg;
    (void)index;
    (void)row;
    (void)diag;
    return STATUS_OK;
}

static void a_lookup_takes_the_queue_along(void **state)
{
    struct fixture *f = *state;
    const struct db_column columns[] = {
        {.name = "id", .type = DB_TEXT, .role = DB_KEY},
        {.name = "total", .type = DB_INT64, .role = DB_SET},
    };
    const struct db_table accounts = {
        .name = "account", .columns = columns, .ncolumns = 2};
    const struct text keys[] = {TEXT_LITERAL("a")};
    int64_t before = 0;

    make_table(f);
    run(f, "CREATE TABLE account (id TEXT PRIMARY KEY, total BIGINT)");
    for (int i = 0; i < 2; i++) {
        before = trips(f); /* the table's columns are known the second time */
        begin(f);
        insert_later(f, i, i);
        ok(f, db_lookup(f->db, &accounts, keys, 1, ignore_row, NULL, &f->diag));
        commit(f);
    }
    assert_int_equal(trips(f), before + 2);
}

static void an_empty_transaction_costs_nothing(void **state)
{
    struct fixture *f = *state;
    int64_t before = trips(f);

    begin(f);
    commit(f);
    begin(f);
    ok(f, db_savepoint(f->db, &f->diag));
    db_rollback(f->db);
    assert_int_equal(trips(f), before);
}

/* The COMMIT goes out behind it, so it has to fail by itself. */
static void a_query_of_the_host_gives_what_is_expected(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = db_sql_make(
        TEXT_LITERAL("SELECT a FROM t WHERE a = ?1"), DB_HOST);
    struct db_value param = db_integer(1);

    make_table(f);
    for (int64_t wanted = 1; wanted <= 2; wanted++) {
        begin(f);
        insert_later(f, wanted, 1);
        ok(f, db_queue(f->db, &sql, &param, 1, wanted, 2, &f->diag));
        if (wanted == 1)
            commit(f);
        else
            assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
        db_rollback(f->db);
    }
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static int64_t read_after(struct fixture *f, struct db_sql *sql, int64_t after)
{
    struct db_value param = db_integer(after);
    int64_t value = 0;
    bool found;

    ok(f, db_query_int64(f->db, sql, &param, 1, &value, &found, &f->diag));
    return found ? value : -1;
}

static void an_announced_query_comes_along_with_the_commit(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT min(a) FROM t WHERE a > ?1");
    struct db_value param = db_integer(1);
    int64_t before;

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    insert_later(f, 2, 2);
    db_announce(f->db, &sql, &param, 1);
    commit(f);
    before = trips(f);
    assert_int_equal(read_after(f, &sql, 1), 2);
    assert_int_equal(trips(f), before);
    assert_int_equal(read_after(f, &sql, 1), 2); /* taken once */
    assert_int_equal(trips(f), before + 1);

    /* another question is asked for itself */
    begin(f);
    insert_later(f, 3, 3);
    db_announce(f->db, &sql, &param, 1);
    commit(f);
    assert_int_equal(read_after(f, &sql, 2), 3);

    /* nothing comes of a transaction that was rolled back */
    begin(f);
    insert_later(f, 4, 4);
    db_announce(f->db, &sql, &param, 1);
    db_rollback(f->db);
    before = trips(f);
    assert_int_equal(read_after(f, &sql, 3), -1);
    assert_int_equal(trips(f), before + 1);
}

static void a_failing_announcement_does_not_touch_the_commit(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT 1 / (a - ?1) FROM t");
    struct db_value param = db_integer(1);

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    db_announce(f->db, &sql, &param, 1);
    commit(f);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

/* --- losses -------------------------------------------------------------- */

static void end_session(struct fixture *f, struct db *other)
{
    char text[96];

    snprintf(text, sizeof(text), "SELECT pg_terminate_backend(%lld, 10000)",
             (long long)number(f, "SELECT pg_backend_pid()"));
    ok(f, try_run(f, other, text));
}

static void a_session_that_was_ended_is_lost_until_it_is_reopened(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    ok(f, db_flush(f->db, NULL, &f->diag));
    end_session(f, other);
    insert_later(f, 2, 2);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_LOST);
    assert_int_equal(try_run(f, f->db, "SELECT 1"), STATUS_LOST);
    ok(f, db_reopen(f->db, &f->diag));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    begin(f);
    insert_later(f, 1, 1); /* prepared anew */
    commit(f);
    db_close(other);
}

static void statements_survive_a_change_of_their_table(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT * FROM t");
    enum status status;

    make_table(f);
    ok(f, db_execute(f->db, &sql, NULL, 0, NULL, &f->diag));
    run(f, "ALTER TABLE t ADD COLUMN c TEXT");
    status = db_execute(f->db, &sql, NULL, 0, NULL, &f->diag);
    assert_true(status == STATUS_OK || status == STATUS_CONFLICT);
    ok(f, db_execute(f->db, &sql, NULL, 0, NULL, &f->diag));
}

static void errors_name_detail_and_constraint(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE c (a INT CONSTRAINT positive CHECK (a > 0),"
           " b INT CONSTRAINT only_once UNIQUE)");
    assert_int_equal(try_run(f, f->db, "INSERT INTO c VALUES (0, 1)"),
                     STATUS_PERMANENT);
    assert_says(f, "positive");
    assert_says(f, "23514");
    run(f, "INSERT INTO c VALUES (1, 1)");
    assert_int_equal(try_run(f, f->db, "INSERT INTO c VALUES (1, 1)"),
                     STATUS_UNIQUE);
    assert_string_equal(f->diag.constraint, "only_once");
    assert_says(f, "(b)=(1)");
}

static void a_deadlock_is_a_conflict(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(try_run(f, f->db,
                             "DO $$ BEGIN RAISE EXCEPTION 'x' USING"
                             " ERRCODE = '40P01'; END $$"),
                     STATUS_CONFLICT);
    assert_int_equal(try_run(f, f->db,
                             "DO $$ BEGIN RAISE EXCEPTION 'x' USING"
                             " ERRCODE = '53100'; END $$"),
                     STATUS_UNAVAILABLE);
    assert_int_equal(try_run(f, f->db,
                             "DO $$ BEGIN RAISE EXCEPTION 'x' USING"
                             " ERRCODE = '57014'; END $$"),
                     STATUS_CONFLICT);
}

/* --- scripts ------------------------------------------------------------- */

static void scripts_cannot_change_the_session(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "SET TimeZone = 'Asia/Kathmandu'",
        "SELECT set_config('TimeZone', 'UTC', false)",
        "SELECT \"set_config\"('TimeZone', 'UTC', false)",
        "SELECT pg_advisory_lock(1)",
        "SELECT a INTO u FROM t",
        "WITH x AS (SELECT 1) SELECT 1 INTO u",
        "COPY t TO STDOUT",
        "LISTEN x",
        "NOTIFY x",
        "DO $$ BEGIN COMMIT; END $$",
        "CALL x()",
        "LOCK TABLE t",
        "PREPARE x AS SELECT 1",
        "DEALLOCATE ALL",
        "DISCARD ALL",
        "RESET ALL",
        "EXPLAIN ANALYZE DELETE FROM t",
        "TRUNCATE t",
        "PREPARE TRANSACTION 'x'",
        "END",
        "ABORT",
    };
    static const char *const good[] = {
        "INSERT INTO t SELECT 1, 'set_config(); -- INTO'",
        "WITH x AS (INSERT INTO t VALUES (2, $$;COMMIT;$$) RETURNING a)"
        " SELECT a FROM x",
        "(SELECT a FROM t) UNION (SELECT 5)",
        "/* a /* nested */ comment */ DELETE FROM t;  -- the end",
    };

    make_table(f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct db_sql sql = script_sql(bad[i]);

        if (db_execute(f->db, &sql, NULL, 0, NULL, &f->diag) !=
                STATUS_PERMANENT ||
            strstr(f->diag.message, "a script may not run") == NULL)
            fail_msg("%s: %s", bad[i], f->diag.message);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct db_sql sql = script_sql(good[i]);

        ok(f, db_execute(f->db, &sql, NULL, 0, NULL, &f->diag));
    }
}

/* A quoted or qualified name is the same table. */
static void scripts_may_read_but_not_write_tables_of_the_host(void **state)
{
    struct fixture *f = *state;
    static const struct catalog_name hosts[] = {{"x", "T"}, {NULL, NULL}};
    static const char *const bad[] = {
        "INSERT INTO t (a) VALUES (1)",
        "insert into \"t\" (a) values (1)",
        "UPDATE only t SET b = 'x'",
        "DELETE FROM other.T WHERE a = 1",
        "WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x",
        "MERGE INTO t USING u ON u.a = t.a WHEN MATCHED THEN DELETE",
    };
    static const struct db_column column = {"a", DB_INT64, DB_KEY};
    static const struct db_table table = {"T", &column, 1, DB_SCRIPT};
    struct db_options options = {.url = f->url, .host_tables = hosts};
    struct db_value row = db_integer(1);
    struct db_sql good = script_sql("INSERT INTO u SELECT a FROM t");
    struct db *db;

    make_table(f);
    run(f, "CREATE TABLE u (a BIGINT)");
    ok(f, db_open(&options, &db, &f->diag));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct db_sql sql = script_sql(bad[i]);

        if (db_execute(db, &sql, NULL, 0, NULL, &f->diag) != STATUS_PERMANENT ||
            strstr(f->diag.message, "table of the host") == NULL)
            fail_msg("%s: %s", bad[i], f->diag.message);
    }
    ok(f, db_execute(db, &good, NULL, 0, NULL, &f->diag));
    ok(f, db_begin(db, &f->diag));
    ok(f, db_queue_bulk(db, DB_UPSERT, &table, &row, 1, 0, &f->diag));
    assert_int_equal(db_commit(db, NULL, &f->diag), STATUS_PERMANENT);
    assert_says(f, "table of the host");
    db_close(db);
}

static void a_function_cannot_write_for_a_script_that_only_reads(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = db_sql_make(text_of("SELECT sneaky()"), DB_SCRIPT_READ);
    struct db_rows *rows;

    make_table(f);
    run(f, "CREATE FUNCTION sneaky() RETURNS BIGINT LANGUAGE sql AS"
           " 'INSERT INTO t (a) VALUES (1) RETURNING a'");
    begin(f);
    assert_int_equal(db_query(f->db, &sql, NULL, 0, &rows, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "only read");
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void a_scripts_text_takes_the_type_of_its_place(void **state)
{
    struct fixture *f = *state;
    struct db_sql insert = script_sql("INSERT INTO k VALUES ($1, $2, $3, $4)");
    struct db_sql select = script_sql("SELECT count(*) FROM k WHERE d = $1"
                                      " AND ($2 IS NULL OR j ->> 'x' = $3)");
    struct db_value params[] = {
        db_string("2026-01-31"), db_string("{\"x\": \"y\"}"),
        db_string("12.50"), db_string("0190b8a0-0000-7000-8000-0123456789ab")};
    struct db_value wanted[] = {db_string("2026-01-31"), db_null(),
                                db_string("y")};
    int64_t count = 0;
    bool found;

    run(f, "CREATE TABLE k (d DATE, j JSONB, n NUMERIC(10,2), u UUID)");
    ok(f, db_execute(f->db, &insert, params, 4, NULL, &f->diag));
    ok(f, db_query_int64(f->db, &select, wanted, 3, &count, &found, &f->diag));
    assert_int_equal(count, 1);
}

/* --- tables -------------------------------------------------------------- */

static const struct db_shape_column columns[] = {
    {.name = "id", .kind = DB_KIND_KEY, .not_null = true, .primary = true},
    {.name = "iban", .kind = DB_KIND_TEXT, .indexed = true, .unique = true},
    {.name = "price",
     .kind = DB_KIND_DECIMAL,
     .precision = 38,
     .scale = 10,
     .indexed = true},
    {.name = "at", .kind = DB_KIND_TIMESTAMP},
    {.name = "state", .kind = DB_KIND_DOCUMENT, .not_null = true},
};
static const struct db_shape shape = {"Things", columns, 5};

static void a_created_table_comes_back_as_its_shape(void **state)
{
    struct fixture *f = *state;
    struct arena arena = ARENA_EMPTY;
    struct db_shape back;
    bool exists;

    ok(f, db_create_table(f->db, &shape, &f->diag));
    ok(f, db_describe_table(f->db, "THINGS", &arena, &back, &exists, &f->diag));
    assert_true(exists);
    assert_int_equal(back.ncolumns, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(back.columns[i].name, columns[i].name);
        assert_null(db_column_fits(f->db, &columns[i], &back.columns[i]));
        assert_int_equal(back.columns[i].unique, columns[i].unique);
        assert_int_equal(back.columns[i].primary, columns[i].primary);
    }
    arena_free(&arena);
}

static void only_a_whole_index_of_one_column_makes_it_unique(void **state)
{
    struct fixture *f = *state;
    struct arena arena = ARENA_EMPTY;
    struct db_shape back;
    bool exists;

    run(f, "CREATE TABLE x (a INT, b INT, c INT, d INT, e INT UNIQUE)");
    run(f, "CREATE UNIQUE INDEX ON x (a) INCLUDE (b)");
    run(f, "CREATE UNIQUE INDEX ON x (b) WHERE b > 0");
    run(f, "CREATE UNIQUE INDEX ON x (c, d)");
    run(f, "CREATE UNIQUE INDEX ON x ((d + 1))");
    ok(f, db_describe_table(f->db, "x", &arena, &back, &exists, &f->diag));
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(back.columns[i].unique, i == 4);
    arena_free(&arena);
}

static void a_table_of_another_schema_is_not_seen(void **state)
{
    struct fixture *f = *state;
    struct arena arena = ARENA_EMPTY;
    struct db_shape back;
    bool exists = true;

    ok(f,
       db_describe_table(f->db, "pg_class", &arena, &back, &exists, &f->diag));
    assert_false(exists);
    arena_free(&arena);
}

/* --- plans ----------------------------------------------------------------
 */

static const struct db_column grown_columns[] = {
    {"a", DB_TEXT, DB_KEY},
    {"b", DB_TEXT, DB_SET},
};
static const struct db_table grown = {"grown", grown_columns, 2, DB_HOST};

static enum status take_nothing(void *arg, size_t index, struct db_rows *row,
                                struct diag *diag)
{
    (void)arg;
    (void)index;
    (void)row;
    (void)diag;
    return STATUS_OK;
}

static void look_up_some(struct fixture *f)
{
    const struct text keys[] = {TEXT_LITERAL("1"), TEXT_LITERAL("5000"),
                                TEXT_LITERAL("9999")};

    ok(f, db_lookup(f->db, &grown, keys, 3, take_nothing, NULL, &f->diag));
}

static int64_t scans(struct fixture *f)
{
    return number(f, "SELECT sum(seq_scan) FROM pg_stat_xact_user_tables"
                     " WHERE relname = 'grown'");
}

/* Nobody analyzes the table, as while a read model is built from the start. */
static void a_table_that_grew_is_not_read_as_a_whole_for_some_keys(void **state)
{
    struct fixture *f = *state;
    int64_t before;

    run(f, "CREATE TABLE grown (a VARCHAR(255) NOT NULL PRIMARY KEY, b TEXT)"
           " WITH (autovacuum_enabled = off)");
    run(f, "INSERT INTO grown SELECT n, 'x' FROM generate_series(1, 50) AS n");
    for (int i = 0; i < 16; i++)
        look_up_some(f);
    run(f, "INSERT INTO grown SELECT n, repeat('x', 100)"
           " FROM generate_series(51, 20000) AS n");
    begin(f);
    before = scans(f);
    look_up_some(f);
    assert_int_equal(scans(f), before);
    commit(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_postgres(a_transaction_of_queued_statements_is_one_round_trip),
        on_postgres(a_lookup_takes_the_queue_along),
        on_postgres(an_empty_transaction_costs_nothing),
        on_postgres(a_query_of_the_host_gives_what_is_expected),
        on_postgres(an_announced_query_comes_along_with_the_commit),
        on_postgres(a_failing_announcement_does_not_touch_the_commit),
        on_postgres(a_session_that_was_ended_is_lost_until_it_is_reopened),
        on_postgres(statements_survive_a_change_of_their_table),
        on_postgres(errors_name_detail_and_constraint),
        on_postgres(a_deadlock_is_a_conflict),
        on_postgres(scripts_cannot_change_the_session),
        on_postgres(scripts_may_read_but_not_write_tables_of_the_host),
        on_postgres(a_function_cannot_write_for_a_script_that_only_reads),
        on_postgres(a_scripts_text_takes_the_type_of_its_place),
        on_postgres(a_created_table_comes_back_as_its_shape),
        on_postgres(only_a_whole_index_of_one_column_makes_it_unique),
        on_postgres(a_table_of_another_schema_is_not_seen),
        on_postgres(a_table_that_grew_is_not_read_as_a_whole_for_some_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
