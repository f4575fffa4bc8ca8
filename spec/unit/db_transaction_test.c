/* Transactions of db/db.h: sticky failure, savepoints, the end. */
#include "db_support.h"

static void rows_of_a_commit_stay(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    assert_true(db_in_transaction(f->db));
    run(f, "INSERT INTO t VALUES (1)");
    commit(f);
    assert_false(db_in_transaction(f->db));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void rows_of_a_rollback_go(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    db_rollback(f->db); /* without a transaction: nothing */
}

static void after_a_failure_every_call_fails_alike(void **state)
{
    struct fixture *f = *state;
    struct db_sql insert = sql_of("INSERT INTO t VALUES (9)");
    struct db_sql select = sql_of("SELECT a FROM t");
    struct db_rows *rows;
    int64_t now_us;
    char first[DIAG_MESSAGE_SIZE];

    run(f, "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    assert_int_equal(try_run(f, f->db, "INSERT INTO t VALUES (1)"),
                     STATUS_UNIQUE);
    strcpy(first, f->diag.message);

    assert_int_equal(try_run(f, f->db, "SELECT 1"), STATUS_UNIQUE);
    assert_string_equal(f->diag.message, first);
    assert_string_equal(f->diag.constraint, "t.a");
    assert_int_equal(db_query(f->db, &select, NULL, 0, &rows, &f->diag),
                     STATUS_UNIQUE);
    assert_int_equal(
        db_queue(f->db, &insert, NULL, 0, DB_ANY_ROWS, 1, &f->diag),
        STATUS_UNIQUE);
    assert_int_equal(db_flush(f->db, NULL, &f->diag), STATUS_UNIQUE);
    assert_int_equal(db_savepoint(f->db, &f->diag), STATUS_UNIQUE);
    assert_int_equal(db_now(f->db, &now_us, &f->diag), STATUS_UNIQUE);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNIQUE);
    assert_string_equal(f->diag.message, first);
    assert_false(db_in_transaction(f->db));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void outside_of_a_transaction_a_failure_does_not_stick(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(try_run(f, f->db, "SELECT * FROM nowhere"),
                     STATUS_PERMANENT);
    assert_int_equal(number(f, "SELECT 1"), 1);
}

static void a_rollback_to_ends_a_failure_that_came_after_it(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    ok(f, db_savepoint(f->db, &f->diag));
    run(f, "INSERT INTO t VALUES (2)");
    assert_int_equal(try_run(f, f->db, "INSERT INTO t VALUES (1)"),
                     STATUS_UNIQUE);
    assert_int_equal(db_release(f->db, &f->diag), STATUS_UNIQUE);
    ok(f, db_rollback_to(f->db, &f->diag));
    run(f, "INSERT INTO t VALUES (3)");
    commit(f);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 4);
}

static void a_failure_before_the_savepoint_stays(void **state)
{
    struct fixture *f = *state;

    begin(f);
    assert_int_equal(try_run(f, f->db, "SELECT * FROM nowhere"),
                     STATUS_PERMANENT);
    assert_int_equal(db_savepoint(f->db, &f->diag), STATUS_PERMANENT);
    assert_int_equal(db_rollback_to(f->db, &f->diag), STATUS_PERMANENT);
    assert_int_equal(try_run(f, f->db, "SELECT 1"), STATUS_PERMANENT);
    db_rollback(f->db);
}

static void savepoints_nest(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    ok(f, db_savepoint(f->db, &f->diag));
    run(f, "INSERT INTO t VALUES (1)");
    ok(f, db_savepoint(f->db, &f->diag));
    run(f, "INSERT INTO t VALUES (10)");
    ok(f, db_rollback_to(f->db, &f->diag));
    ok(f, db_savepoint(f->db, &f->diag));
    run(f, "INSERT INTO t VALUES (100)");
    ok(f, db_release(f->db, &f->diag));
    ok(f, db_release(f->db, &f->diag));
    commit(f);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 101);
}

static void a_transaction_that_sqlite_ended_never_commits(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT");
    run(f, "INSERT INTO t VALUES (1)");
    begin(f);
    run(f, "INSERT INTO t VALUES (2)");
    assert_int_equal(try_run(f, f->db, "INSERT OR ROLLBACK INTO t VALUES (1)"),
                     STATUS_UNIQUE);
    assert_int_equal(try_run(f, f->db, "INSERT INTO t VALUES (3)"),
                     STATUS_UNIQUE);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNIQUE);
    assert_int_equal(number(f, "SELECT group_concat(a) = '1' FROM t"), 1);
}

static void no_savepoint_survives_the_transaction(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT");
    run(f, "INSERT INTO t VALUES (1)");
    begin(f);
    run(f, "INSERT INTO t VALUES (2)");
    ok(f, db_savepoint(f->db, &f->diag));
    assert_int_equal(try_run(f, f->db, "INSERT OR ROLLBACK INTO t VALUES (1)"),
                     STATUS_UNIQUE);
    assert_int_equal(db_rollback_to(f->db, &f->diag), STATUS_UNIQUE);
    assert_int_equal(try_run(f, f->db, "INSERT INTO t VALUES (3)"),
                     STATUS_UNIQUE);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNIQUE);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void
a_deferred_constraint_that_fails_at_commit_keeps_nothing(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE p (a INTEGER PRIMARY KEY) STRICT");
    run(f, "CREATE TABLE c (a INTEGER REFERENCES p (a) DEFERRABLE INITIALLY"
           " DEFERRED) STRICT");
    begin(f);
    run(f, "INSERT INTO c VALUES (1)");
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_PERMANENT);
    assert_false(db_in_transaction(f->db));
    assert_int_equal(number(f, "SELECT count(*) FROM c"), 0);
    begin(f); /* the connection is usable */
    commit(f);
}

static void a_lock_of_another_writer_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);

    begin(f);
    assert_int_equal(db_begin(other, &f->diag), STATUS_CONFLICT);
    assert_says(f, "locked by another program");
    assert_false(db_in_transaction(other));
    commit(f);
    ok(f, db_begin(other, &f->diag));
    db_close(other);
}

static void a_reader_that_was_overtaken_cannot_write(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    ok(f, db_begin_read(f->db, &f->diag));
    ok(f, try_run(f, other, "INSERT INTO t VALUES (1)"));
    /* its view was fixed when it began */
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    assert_int_equal(try_run(f, f->db, "INSERT INTO t VALUES (2)"),
                     STATUS_CONFLICT);
    assert_says(f, "another connection wrote");
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
    db_close(other);
}

static void a_reader_holds_no_writers_lock(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);

    ok(f, db_begin_read(f->db, &f->diag));
    ok(f, db_begin(other, &f->diag));
    db_close(other);
    commit(f);
}

static void a_second_begin_is_an_error(void **state)
{
    struct fixture *f = *state;

    begin(f);
    assert_int_equal(db_begin(f->db, &f->diag), STATUS_PERMANENT);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_PERMANENT);
}

static void reopening_forgets_an_open_transaction(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    ok(f, db_reopen(f->db, &f->diag));
    assert_false(db_in_transaction(f->db));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    assert_int_equal(number(f, "PRAGMA synchronous"), 2);
    assert_int_equal(number(f, "PRAGMA foreign_keys"), 1);
}

static void a_database_in_memory_keeps_its_content_when_reopened(void **state)
{
    struct fixture *f = *state;

    db_close(f->db);
    strcpy(f->url, "sqlite::memory:");
    f->db = fixture_connect(f);
    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    run(f, "INSERT INTO t VALUES (7)");
    begin(f);
    run(f, "DELETE FROM t");
    ok(f, db_reopen(f->db, &f->diag));
    assert_int_equal(number(f, "SELECT a FROM t"), 7);
}

static void a_lost_connection_stays_lost_until_it_can_be_reopened(void **state)
{
    struct fixture *f = *state;
    char moved[128];

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    snprintf(moved, sizeof(moved), "%s.other", f->path);
    assert_int_equal(rename(f->path, moved), 0);
    assert_int_equal(db_reopen(f->db, &f->diag), STATUS_UNAVAILABLE);
    assert_int_equal(try_run(f, f->db, "SELECT 1"), STATUS_LOST);
    assert_int_equal(db_begin(f->db, &f->diag), STATUS_LOST);
    assert_int_equal(rename(moved, f->path), 0);
    ok(f, db_reopen(f->db, &f->diag));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_database(rows_of_a_commit_stay),
        with_database(rows_of_a_rollback_go),
        with_database(after_a_failure_every_call_fails_alike),
        with_database(outside_of_a_transaction_a_failure_does_not_stick),
        with_database(a_rollback_to_ends_a_failure_that_came_after_it),
        with_database(a_failure_before_the_savepoint_stays),
        with_database(savepoints_nest),
        with_database(a_transaction_that_sqlite_ended_never_commits),
        with_database(no_savepoint_survives_the_transaction),
        with_database(a_deferred_constraint_that_fails_at_commit_keeps_nothing),
        with_database(a_lock_of_another_writer_is_a_conflict),
        with_database(a_reader_that_was_overtaken_cannot_write),
        with_database(a_reader_holds_no_writers_lock),
        with_database(a_second_begin_is_an_error),
        with_database(reopening_forgets_an_open_transaction),
        with_database(a_database_in_memory_keeps_its_content_when_reopened),
        with_database(a_lost_connection_stays_lost_until_it_can_be_reopened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
