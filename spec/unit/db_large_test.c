/* Queries whose rows may be large together: read one by one. */
#include "db_support.h"

#define ROWS 100

static void fill(struct fixture *f)
{
    make_table(f);
    begin(f);
    for (int i = 1; i <= ROWS; i++)
        insert_later(f, i, 0);
    commit(f);
}

static struct db_sql page_sql(void)
{
    struct db_sql sql = sql_of("SELECT a FROM t WHERE a > ?1 ORDER BY a");

    sql.large = true;
    return sql;
}

static struct db_rows *open_after(struct fixture *f, const struct db_sql *sql,
                                  int64_t after)
{
    struct db_value param = db_integer(after);
    struct db_rows *rows;

    ok(f, db_query(f->db, sql, &param, 1, &rows, &f->diag));
    return rows;
}

/* Reads up to `most` rows after `after` and gives how many were right. */
static int read_some(struct fixture *f, const struct db_sql *sql, int64_t after,
                     int most)
{
    struct db_rows *rows = open_after(f, sql, after);
    bool more = true;
    int count = 0;

    while (count < most) {
        ok(f, db_next(rows, &more, &f->diag));
        if (!more)
            break;
        count++;
        assert_int_equal(db_get_int64(rows, 0), after + count);
    }
    db_rows_close(rows);
    return count;
}

static void every_row_comes_in_order(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = page_sql();

    fill(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(read_some(f, &sql, 10, ROWS), ROWS - 10);
    assert_int_equal(read_some(f, &sql, ROWS, ROWS), 0);
    begin(f);
    insert_later(f, ROWS + 1, 0);
    assert_int_equal(read_some(f, &sql, 10, 2 * ROWS), ROWS - 9);
    commit(f);
}

static void a_result_that_is_closed_early_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = page_sql();

    fill(f);
    for (int most = 0; most < 3; most++) {
        assert_int_equal(read_some(f, &sql, 0, most), most);
        assert_int_equal(number(f, "SELECT count(*) FROM t"), ROWS);
    }
}

static void a_failure_between_rows_is_told_where_it_comes(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT 1 / (a - ?1) FROM t ORDER BY a");
    struct db_rows *rows;
    enum status status = STATUS_OK;
    bool more = true;
    int count = 0;

    fill(f);
    sql.large = true;
    rows = open_after(f, &sql, 50);
    while (status == STATUS_OK && more) {
        status = db_next(rows, &more, &f->diag);
        count += status == STATUS_OK && more;
    }
    assert_int_equal(status, STATUS_PERMANENT);
    assert_true(count < 50);
    db_rows_close(rows);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), ROWS);
}

static void begin_and_announce(struct fixture *f, const struct db_sql *sql,
                               const struct db_value *after, int64_t value)
{
    begin(f);
    insert_later(f, value, value);
    db_announce(f->db, sql, after, 1);
    ok(f, db_commit_begin(f->db, &f->diag));
}

static void an_announced_one_is_read_while_the_server_writes(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);
    struct db_sql sql = page_sql();
    struct db_value after = db_integer(20);

    run(f, "SET lock_timeout = '60s'"); /* however busy the machine is */
    fill(f);
    ok(f, db_begin(other, &f->diag));
    ok(f, try_run(f, other, "INSERT INTO t (a) VALUES (200)"));
    begin_and_announce(f, &sql, &after, 200); /* waits for the other one */
    assert_int_equal(read_some(f, &sql, 20, ROWS), ROWS - 20);
    db_rollback(other);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    begin_and_announce(f, &sql, &after, 201);
    assert_int_equal(read_some(f, &sql, 20, 3), 3);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(number(f, "SELECT max(a) FROM t"), 201);
    db_close(other);
}

static void an_announced_one_that_nobody_reads_is_passed_over(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = page_sql();
    struct db_value after = db_integer(20);

    fill(f);
    begin_and_announce(f, &sql, &after, 200);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    begin_and_announce(f, &sql, &after, 201);
    assert_int_equal(number(f, "SELECT max(a) FROM t"), 201);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(read_some(f, &sql, 98, 2), 2);
    /* another question is asked for itself */
    begin_and_announce(f, &sql, &after, 202);
    assert_int_equal(read_some(f, &sql, 30, ROWS - 30), ROWS - 30);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
}

static void one_that_fails_does_not_touch_the_commit(void **state)
{
    struct fixture *f = *state;
    struct db_sql sql = sql_of("SELECT 1 / (a - ?1) FROM t ORDER BY a");
    struct db_value param = db_integer(50);
    struct db_rows *rows;
    enum status status = STATUS_OK;
    bool more = true;

    fill(f);
    sql.large = true;
    begin_and_announce(f, &sql, &param, 200);
    rows = open_after(f, &sql, 50);
    while (status == STATUS_OK && more)
        status = db_next(rows, &more, &f->diag);
    db_rows_close(rows);
    assert_int_equal(status, STATUS_PERMANENT);
    ok(f, db_commit_end(f->db, NULL, &f->diag));
    assert_int_equal(number(f, "SELECT max(a) FROM t"), 200);
}

static void a_connection_that_ends_meanwhile_is_no_commit(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);
    struct db_sql sql = page_sql();
    struct db_value after = db_integer(0);
    struct db_rows *rows;
    char end[96];
    enum status status = STATUS_OK;
    bool more = true;

    fill(f);
    run(f, "INSERT INTO t (a, b) SELECT n, repeat('x', 10000)"
           " FROM generate_series(1000, 20000) AS n");
    sql.text = text_of("SELECT a, b FROM t WHERE a > ?1");
    snprintf(end, sizeof(end), "SELECT pg_terminate_backend(%lld)",
             (long long)number(f, "SELECT pg_backend_pid()"));
    begin_and_announce(f, &sql, &after, 300);
    rows = open_after(f, &sql, 0);
    ok(f, try_run(f, other, end));
    while (status == STATUS_OK && more)
        status = db_next(rows, &more, &f->diag);
    db_rows_close(rows);
    assert_int_equal(status, STATUS_LOST);
    assert_int_equal(db_commit_end(f->db, NULL, &f->diag), STATUS_LOST);
    ok(f, db_reopen(f->db, &f->diag));
    assert_int_equal(number(f, "SELECT count(*) FROM t WHERE a = 300"), 0);
    db_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_every_driver(every_row_comes_in_order),
        on_every_driver(a_result_that_is_closed_early_leaves_nothing_behind),
        on_postgres(a_failure_between_rows_is_told_where_it_comes),
        on_postgres(an_announced_one_is_read_while_the_server_writes),
        on_postgres(an_announced_one_that_nobody_reads_is_passed_over),
        on_postgres(one_that_fails_does_not_touch_the_commit),
        on_postgres(a_connection_that_ends_meanwhile_is_no_commit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
