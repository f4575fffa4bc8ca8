/* A commit that is begun, and its end: whether or not the driver waits. */
#include "db_support.h"

#include "base/clock.h"

static int64_t count(struct fixture *f)
{
    return number(f, "SELECT count(*) FROM t");
}

static void each_transaction_is_committed_before_the_next(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    for (int i = 0; i < 5; i++) {
        begin(f);
        insert_later(f, i, i);
        if (i > 0)
            ok(f, db_commit_end(f->db, NULL, &f->diag));
        ok(f, db_commit_begin(f->db, &f->diag));
        assert_false(db_in_transaction(f->db));
    }
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(count(f), 5);
}

static void a_statement_that_follows_sees_what_was_committed(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    ok(f, db_commit_begin(f->db, &f->diag));
    assert_int_equal(count(f), 1);
    begin(f);
    insert_later(f, 2, 2);
    assert_int_equal(count(f), 2);
    commit(f);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(count(f), 2);
}

static void an_end_that_nobody_asked_for_forbids_another_begin(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    assert_int_equal(db_commit_end(f->db, NULL, &f->diag), STATUS_PERMANENT);
    begin(f);
    insert_later(f, 1, 1);
    ok(f, db_commit_begin(f->db, &f->diag));
    begin(f);
    insert_later(f, 2, 2);
    assert_int_equal(db_commit_begin(f->db, &f->diag), STATUS_PERMANENT);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    ok(f, db_commit_begin(f->db, &f->diag));
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(count(f), 2);
}

static void nothing_to_commit_has_an_end_too(void **state)
{
    struct fixture *f = *state;

    begin(f);
    ok(f, db_commit_begin(f->db, &f->diag));
    ok(f, db_commit_end(f->db, NULL, &f->diag));
}

/* The failure comes from one of the two calls, and takes all of it back. */
static void a_failure_names_the_statement_and_dooms_what_followed(void **state)
{
    struct fixture *f = *state;
    int64_t tag = -1;
    bool left;

    make_table(f);
    run(f, "INSERT INTO t (a) VALUES (7)");
    begin(f);
    insert_later(f, 6, 6);
    insert_later(f, 7, 7);
    insert_later(f, 8, 8);
    left = db_commit_begin(f->db, &f->diag) == STATUS_OK;
    if (left) {
        begin(f);
        insert_later(f, 9, 9);
        assert_int_equal(try_run(f, f->db, "INSERT INTO t (a) VALUES (10)"),
                         STATUS_CONFLICT);
        assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
        assert_int_equal(db_commit_end(f->db, &tag, &f->diag), STATUS_UNIQUE);
        assert_int_equal(tag, 7);
    }
    assert_int_equal(f->diag.status, STATUS_UNIQUE);
    assert_int_equal(count(f), 1);
    begin(f);
    insert_later(f, 11, 11);
    commit(f);
    assert_int_equal(count(f), 2);
}

static void a_rollback_of_what_followed_does_not_touch_it(void **state)
{
    struct fixture *f = *state;

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    ok(f, db_commit_begin(f->db, &f->diag));
    begin(f);
    insert_later(f, 2, 2);
    db_rollback(f->db);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(count(f), 1);
}

/* --- where the driver does not wait -------------------------------------- */

static int64_t read_after(struct fixture *f, struct db_sql *sql, int64_t after)
{
    struct db_value param = db_integer(after);
    int64_t value = 0;
    bool found;

    ok(f, db_query_int64(f->db, sql, &param, 1, &value, &found, &f->diag));
    return found ? value : -1;
}

/* Somebody else holds the row that the transaction writes, so the announced
 * result can only have come before the transaction was done. */
static void what_was_announced_is_there_while_the_server_writes(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);
    struct db_sql page = sql_of("SELECT min(a) FROM t WHERE a > ?1");
    struct db_sql change = sql_of("UPDATE t SET a = 10 WHERE a = 1");
    struct db_value param = db_integer(1);

    make_table(f);
    run(f, "INSERT INTO t (a) VALUES (1), (2)");
    ok(f, db_begin(other, &f->diag));
    ok(f, try_run(f, other, "SELECT 1 FROM t WHERE a = 1 FOR UPDATE"));
    begin(f);
    ok(f, db_queue(f->db, &change, NULL, 0, 1, 0, &f->diag));
    db_announce(f->db, &page, &param, 1);
    ok(f, db_commit_begin(f->db, &f->diag));
    assert_int_equal(read_after(f, &page, 1), 2);
    ok(f, db_commit(other, NULL, &f->diag));
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(number(f, "SELECT max(a) FROM t"), 10);
    db_close(other);
}

static void a_failing_announcement_does_not_touch_the_commit(void **state)
{
    struct fixture *f = *state;
    struct db_sql page = sql_of("SELECT 1 / (?1 - 1)");
    struct db_value param = db_integer(1);

    make_table(f);
    begin(f);
    insert_later(f, 1, 1);
    db_announce(f->db, &page, &param, 1);
    ok(f, db_commit_begin(f->db, &f->diag));
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(count(f), 1);
}

static void a_connection_that_ends_before_the_answer_is_lost(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);
    struct db_sql change = sql_of("UPDATE t SET a = 10 WHERE a = 1");
    char end[96];

    make_table(f);
    run(f, "INSERT INTO t (a) VALUES (1)");
    snprintf(end, sizeof(end), "SELECT pg_terminate_backend(%lld, 10000)",
             (long long)number(f, "SELECT pg_backend_pid()"));
    ok(f, db_begin(other, &f->diag));
    ok(f, try_run(f, other, "SELECT 1 FROM t WHERE a = 1 FOR UPDATE"));
    begin(f);
    ok(f, db_queue(f->db, &change, NULL, 0, 1, 0, &f->diag));
    ok(f, db_commit_begin(f->db, &f->diag));
    ok(f, try_run(f, other, end));
    begin(f);
    insert_later(f, 2, 2);
    assert_int_equal(db_flush(f->db, NULL, &f->diag), STATUS_LOST);
    assert_int_equal(db_commit_end(f->db, NULL, &f->diag), STATUS_LOST);
    db_rollback(f->db);
    ok(f, db_reopen(f->db, &f->diag));
    db_rollback(other);
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 1);
    db_close(other);
}

static void a_deadline_of_the_commit_interrupts_it(void **state)
{
    struct fixture *f = *state;
    struct db_sql slow = sql_of("SELECT pg_sleep(600)");

    begin(f);
    ok(f, db_queue(f->db, &slow, NULL, 0, DB_ANY_ROWS, 5, &f->diag));
    db_deadline(f->db, clock_monotonic() + CLOCK_SECOND / 5);
    ok(f, db_commit_begin(f->db, &f->diag));
    db_deadline(f->db, 0);
    assert_int_equal(db_commit_end(f->db, NULL, &f->diag), STATUS_FAILED);
    assert_int_equal(number(f, "SELECT 1"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_every_driver(each_transaction_is_committed_before_the_next),
        on_every_driver(a_statement_that_follows_sees_what_was_committed),
        on_every_driver(an_end_that_nobody_asked_for_forbids_another_begin),
        on_every_driver(nothing_to_commit_has_an_end_too),
        on_every_driver(a_failure_names_the_statement_and_dooms_what_followed),
        on_every_driver(a_rollback_of_what_followed_does_not_touch_it),
        on_postgres(what_was_announced_is_there_while_the_server_writes),
        on_postgres(a_failing_announcement_does_not_touch_the_commit),
        on_postgres(a_connection_that_ends_before_the_answer_is_lost),
        on_postgres(a_deadline_of_the_commit_interrupts_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
