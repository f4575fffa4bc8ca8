/* What MariaDB does with a session that does not watch out (traps V12 to V18
 * of the design), and what the driver makes of it. */
#include "mysql_support.h"

#include <pthread.h>

/* A conflict on row 2: another session holds it. */
static void two_rows(struct fixture *f)
{
    raw_run(f, "CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE = InnoDB");
    raw_run(f, "INSERT INTO t VALUES (1, 0), (2, 0)");
}

static void after_a_lock_wait_in_vain_nothing_is_kept(void **state)
{
    struct fixture *f = begin_test(state);

    two_rows(f);
    raw_run(f, "BEGIN");
    raw_run(f, "UPDATE t SET b = 9 WHERE a = 2");
    begin(f);
    run(f, "INSERT INTO t VALUES (3, 0)");
    assert_int_equal(try_run(f, "UPDATE t SET b = 1 WHERE a = 2"),
                     STATUS_CONFLICT);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    raw_run(f, "ROLLBACK");
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 2);
    begin(f); /* the same connection goes on */
    run(f, "INSERT INTO t VALUES (4, 0)");
    commit(f);
    assert_int_equal(raw_number(f, "SELECT max(a) FROM t"), 4);
}

static void a_lock_wait_in_vain_is_not_undone_by_a_savepoint(void **state)
{
    struct fixture *f = begin_test(state);

    two_rows(f);
    raw_run(f, "BEGIN");
    raw_run(f, "UPDATE t SET b = 9 WHERE a = 2");
    begin(f);
    run(f, "INSERT INTO t VALUES (3, 0)");
    ok(f, db_savepoint(f->db, &f->diag));
    assert_int_equal(try_run(f, "UPDATE t SET b = 1 WHERE a = 2"),
                     STATUS_CONFLICT);
    assert_int_equal(db_rollback_to(f->db, &f->diag), STATUS_CONFLICT);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    raw_run(f, "ROLLBACK");
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 2);
}

static void queued_statements_do_not_wait_one_after_the_other(void **state)
{
    struct fixture *f = begin_test(state);
    int64_t began = clock_monotonic();

    two_rows(f);
    raw_run(f, "BEGIN");
    raw_run(f, "UPDATE t SET b = 9 WHERE a IN (1, 2)");
    begin(f);
    for (int i = 0; i < 40; i++)
        queue_one(f, "UPDATE t SET b = ?1 WHERE a = 2", i, 1, i);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    assert_true(clock_monotonic() - began < 10 * CLOCK_SECOND);
    raw_run(f, "ROLLBACK");
    /* 39 answers were not waited for: the connection is made anew */
    assert_int_equal(db_begin(f->db, &f->diag), STATUS_LOST);
    ok(f, db_reopen(f->db, &f->diag));
    begin(f);
    run(f, "INSERT INTO t VALUES (5, 0)");
    commit(f);
}

/* --- deadlock: one thread holds row 1 and waits for row 2 ----------------- */

struct other {
    MYSQL *raw;
    bool failed;
};

static void *take_row_one(void *arg)
{
    struct other *other = arg;

    other->failed = mysql_query(other->raw, "UPDATE t SET b = 8 WHERE a = 1") !=
                    0;
    if (!other->failed)
        raw_run_on(other->raw, "COMMIT");
    return NULL;
}

static void wait_until_locked_out(struct fixture *f, MYSQL *other)
{
    char text[160];

    snprintf(text, sizeof(text),
             "SELECT count(*) FROM information_schema.innodb_trx WHERE"
             " trx_mysql_thread_id = %lu AND trx_state = 'LOCK WAIT'",
             mysql_thread_id(other));
    /* the table is a copy, made anew when nobody has read it for 0.1 s */
    for (int64_t end = clock_monotonic() + 20 * CLOCK_SECOND;
         raw_number(f, text) == 0;) {
        assert_true(clock_monotonic() < end);
        raw_run(f, "DO SLEEP(0.15)");
    }
}

/* Leaves the host's transaction as the victim: it has changed less. */
static void deadlock(struct fixture *f, struct other *other, pthread_t *thread)
{
    two_rows(f);
    raw_run(f, "CREATE TABLE log (n INT) ENGINE = InnoDB");
    other->raw = raw_connect(f, NULL, f->name);
    raw_run_on(other->raw, "SET innodb_lock_wait_timeout = 20");
    raw_run_on(other->raw, "BEGIN");
    raw_run_on(other->raw, "INSERT INTO log SELECT seq FROM seq_1_to_500");
    raw_run_on(other->raw, "UPDATE t SET b = 8 WHERE a = 2");
    begin(f);
    run(f, "UPDATE t SET b = 1 WHERE a = 1");
    assert_int_equal(pthread_create(thread, NULL, take_row_one, other), 0);
    wait_until_locked_out(f, other->raw);
}

static void end_of_other(struct other *other, pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(other->failed);
    mysql_close(other->raw);
}

static void
a_deadlock_ends_the_transaction_and_nothing_commits_by_itself(void **state)
{
    struct fixture *f = begin_test(state);
    struct other other;
    pthread_t thread;

    deadlock(f, &other, &thread);
    assert_int_equal(try_run(f, "UPDATE t SET b = 1 WHERE a = 2"),
                     STATUS_CONFLICT);
    assert_int_equal(try_run(f, "INSERT INTO t VALUES (7, 7)"),
                     STATUS_CONFLICT);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    end_of_other(&other, thread);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t WHERE b = 8"), 2);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 2);
}

static const struct db_column pair_columns[] = {{"a", DB_INT64, DB_KEY},
                                                {"b", DB_INT64, DB_SET}};
static const struct db_table pairs = {"t", pair_columns, 2, DB_HOST};

/* So many bulk statements of two rows each, from a key on. */
static void queue_pairs(struct fixture *f, struct db_value *rows, int first,
                        int count)
{
    for (int i = 0; i < count; i++, rows += 4) {
        rows[0] = db_integer(first + 2 * i);
        rows[2] = db_integer(first + 2 * i + 1);
        rows[1] = rows[3] = db_integer(7);
        ok(f, db_queue_bulk(f->db, DB_INSERT, &pairs, rows, 2, first + i,
                            &f->diag));
    }
}

enum { MOST_PAIRS = 40 };

/* The deadlock has so many statements before it and behind it, of which the
 * last needs what the other one holds. */
static void deadlock_in_a_queue(struct fixture *f, int before, int behind)
{
    struct db_value rows[2][MOST_PAIRS * 4];
    struct db_value own[] = {db_integer(1), db_integer(1)};
    struct db_value set[] = {db_integer(2), db_integer(1)};
    struct other other;
    pthread_t thread;
    int64_t tag = 0, connection;

    deadlock(f, &other, &thread);
    connection = number(f, "SELECT CONNECTION_ID()");
    queue_pairs(f, rows[0], 900, 1); /* what is prepared goes out at once */
    ok(f, db_queue_bulk(f->db, DB_UPDATE, &pairs, own, 1, 1, &f->diag));
    queue_one(f, "UPDATE t SET b = ?1 WHERE a = 1", 3, 1, 2);
    ok(f, db_flush(f->db, NULL, &f->diag));
    queue_pairs(f, rows[0], 1000, before);
    ok(f, db_queue_bulk(f->db, DB_UPDATE, &pairs, set, 1, 1, &f->diag));
    queue_pairs(f, rows[1], 2000, behind);
    if (behind > 0)
        queue_one(f, "UPDATE t SET b = ?1 WHERE a = 1", 3, 1, 2);
    assert_int_equal(db_commit(f->db, &tag, &f->diag), STATUS_CONFLICT);
    assert_says(f, "Deadlock found");
    assert_int_equal(tag, 1);
    end_of_other(&other, thread);
    begin(f);
    assert_int_equal(number(f, "SELECT CONNECTION_ID()"), connection);
    run(f, "INSERT INTO t VALUES (3, 8)");
    commit(f);
    assert_int_equal(raw_number(f, "SELECT sum(b) FROM t"), 3 * 8);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 3);
}

static void a_deadlock_of_what_was_sent_last_keeps_the_connection(void **state)
{
    deadlock_in_a_queue(begin_test(state), 0, 0);
}

static void what_was_sent_after_a_deadlock_does_not_commit(void **state)
{
    deadlock_in_a_queue(begin_test(state), 0, MOST_PAIRS);
}

static void
a_deadlock_amid_a_queue_is_a_conflict_of_its_own_statement(void **state)
{
    deadlock_in_a_queue(begin_test(state), MOST_PAIRS, MOST_PAIRS);
}

static void a_deadlock_behind_others_is_a_conflict(void **state)
{
    deadlock_in_a_queue(begin_test(state), MOST_PAIRS, 0);
}

/* The other one keeps its locks, so each statement could wait as long. */
static void a_connection_given_up_for_a_lock_says_why(void **state)
{
    struct fixture *f = begin_test(state);
    MYSQL *other;

    two_rows(f);
    other = raw_connect(f, NULL, f->name);
    raw_run_on(other, "BEGIN");
    raw_run_on(other, "UPDATE t SET b = 8");
    begin(f);
    for (int i = 0; i < 30; i++)
        queue_one(f, "UPDATE t SET b = ?1 WHERE a = 1", i, 1, i);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    assert_says(f, "Lock wait timeout");
    assert_int_equal(db_begin(f->db, &f->diag), STATUS_LOST);
    assert_says(f, "the connection to the database is lost: Lock wait");
    ok(f, db_reopen(f->db, &f->diag));
    raw_run_on(other, "ROLLBACK");
    mysql_close(other);
    begin(f);
    run(f, "UPDATE t SET b = 1 WHERE a = 1");
    commit(f);
}

/* --- the others ----------------------------------------------------------- */

static void no_table_is_created_inside_a_transaction(void **state)
{
    struct fixture *f = begin_test(state);
    static const struct db_shape_column columns[] = {
        {.name = "a", .kind = DB_KIND_KEY, .primary = true}};
    static const struct db_shape shape = {"u", columns, 1};

    two_rows(f);
    begin(f);
    run(f, "INSERT INTO t VALUES (3, 0)");
    assert_int_equal(
        db_script(f->db, text_of("CREATE TABLE x (a INT)"), DB_HOST, &f->diag),
        STATUS_PERMANENT);
    assert_says(f, "inside a transaction");
    db_rollback(f->db);
    begin(f);
    run(f, "INSERT INTO t VALUES (3, 0)");
    assert_int_equal(db_create_table(f->db, &shape, &f->diag),
                     STATUS_PERMANENT);
    db_rollback(f->db);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 2);
}

static void one_program_at_a_time_creates_tables(void **state)
{
    struct fixture *f = begin_test(state);
    struct db *other = connect_again(f);

    ok(f, db_begin_schema(f->db, &f->diag));
    ok(f,
       db_script(f->db, text_of("CREATE TABLE t (a INT)"), DB_HOST, &f->diag));
    assert_int_equal(db_begin_schema(other, &f->diag), STATUS_CONFLICT);
    assert_says(f, "another program");
    run(f, "INSERT INTO t VALUES (1)");
    commit(f);
    ok(f, db_begin_schema(other, &f->diag));
    db_rollback(other);
    ok(f, db_begin_schema(f->db, &f->diag));
    db_rollback(f->db);
    db_close(other);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 1);
}

static void a_poller_sees_what_was_committed_since_it_looked(void **state)
{
    struct fixture *f = begin_test(state);

    two_rows(f);
    begin(f);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 2);
    raw_run(f, "INSERT INTO t VALUES (3, 0)");
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 3);
    db_rollback(f->db);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 3);
    raw_run(f, "INSERT INTO t VALUES (4, 0)");
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 4);
}

static void a_transaction_that_only_reads_keeps_its_view(void **state)
{
    struct fixture *f = begin_test(state);

    two_rows(f);
    ok(f, db_begin_read(f->db, &f->diag));
    raw_run(f, "INSERT INTO t VALUES (3, 0)");
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 2);
    assert_int_equal(try_run(f, "INSERT INTO t VALUES (4, 0)"),
                     STATUS_PERMANENT);
    db_rollback(f->db);
    begin(f);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 3);
    raw_run(f, "INSERT INTO t VALUES (5, 0)");
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 4);
    db_rollback(f->db);
}

static void an_update_to_the_same_value_counts(void **state)
{
    struct fixture *f = begin_test(state);
    static const struct db_column columns[] = {{"a", DB_INT64, DB_KEY},
                                               {"b", DB_INT64, DB_SET}};
    static const struct db_table table = {"t", columns, 2, DB_HOST};
    struct db_value rows[] = {db_integer(1), db_integer(0), db_integer(2),
                              db_integer(0)};

    two_rows(f);
    begin(f);
    queue_one(f, "UPDATE t SET b = ?1 WHERE a = 1", 0, 1, 1);
    ok(f, db_queue_bulk(f->db, DB_UPDATE, &table, rows, 2, 2, &f->diag));
    commit(f);
}

static void trailing_spaces_and_case_make_another_key(void **state)
{
    struct fixture *f = begin_test(state);
    static const struct db_shape_column columns[] = {
        {.name = "k", .kind = DB_KIND_KEY, .primary = true}};
    static const struct db_shape shape = {"keys_of", columns, 1};
    const char *script = "CREATE TABLE script_keys (k VARCHAR(10) NOT NULL"
                         " PRIMARY KEY) -- nothing of a collation\n;";

    ok(f, db_create_table(f->db, &shape, &f->diag));
    ok(f, db_script(f->db, text_of(script), DB_SCRIPT, &f->diag));
    begin(f);
    run(f, "INSERT INTO keys_of VALUES ('a'), ('a '), ('A'), ('\xc3\xa4')");
    run(f, "INSERT INTO script_keys VALUES ('a'), ('a '), ('A'), ('\xc3\xa4')");
    commit(f);
    assert_int_equal(number(f, "SELECT count(*) FROM keys_of WHERE k = 'a'"),
                     1);
    assert_int_equal(number(f, "SELECT 'a' = 'a ' OR 'a' = 'A'"), 0);
}

static void what_is_too_long_is_refused_and_never_cut(void **state)
{
    struct fixture *f = begin_test(state);
    char mode[256];
    char text[320];
    struct db *lax;

    raw_run(f, "CREATE TABLE s (a VARCHAR(5), n TINYINT, d DATE)"
               " ENGINE = InnoDB");
    raw_text(f, "SELECT @@global.sql_mode", mode, sizeof(mode));
    raw_run(f, "SET GLOBAL sql_mode = ''");
    lax = connect_again(f);
    snprintf(text, sizeof(text), "SET GLOBAL sql_mode = '%s'", mode);
    raw_run(f, text);
    assert_int_equal(try_on(f, lax, "INSERT INTO s (a) VALUES ('abcdefgh')"),
                     STATUS_PERMANENT);
    assert_int_equal(try_on(f, lax, "INSERT INTO s (n) VALUES (300)"),
                     STATUS_PERMANENT);
    assert_int_equal(try_on(f, lax, "INSERT INTO s (d) VALUES ('2026-02-30')"),
                     STATUS_PERMANENT);
    assert_int_equal(try_on(f, lax, "INSERT INTO s (n) VALUES ('x')"),
                     STATUS_PERMANENT);
    db_close(lax);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM s"), 0);
}

/* --- lost connections ----------------------------------------------------- */

#define SETTINGS                                                               \
    "SELECT CONCAT_WS('|', @@autocommit, @@tx_isolation, @@sql_mode,"          \
    " @@time_zone, @@character_set_client, @@character_set_results,"           \
    " @@collation_connection, @@innodb_lock_wait_timeout,"                     \
    " @@lock_wait_timeout, @@max_statement_time,"                              \
    " @@idle_transaction_timeout, @@tx_read_only)"

static void settings_of(struct fixture *f, char *out, size_t size)
{
    struct db_sql sql = sql_of(SETTINGS);
    struct db_rows *rows;
    struct text text;
    bool more;

    ok(f, db_query(f->db, &sql, NULL, 0, &rows, &f->diag));
    ok(f, db_next(rows, &more, &f->diag));
    text = db_get_text(rows, 0);
    snprintf(out, size, TEXT_FORMAT, TEXT_ARGS(text));
    db_rows_close(rows);
}

static void kill_the_connection(struct fixture *f)
{
    char text[64];

    snprintf(text, sizeof(text), "KILL CONNECTION %lld",
             (long long)number(f, "SELECT CONNECTION_ID()"));
    raw_run(f, text);
}

static void
a_killed_connection_is_lost_and_never_replaced_in_silence(void **state)
{
    struct fixture *f = begin_test(state);
    char before[1024], after[1024];

    two_rows(f);
    settings_of(f, before, sizeof(before));
    if (strstr(before, "OFF|READ-COMMITTED|") == NULL)
        fail_msg("%s", before);
    assert_non_null(strstr(before, "STRICT_ALL_TABLES"));
    begin(f);
    run(f, "INSERT INTO t VALUES (3, 0)");
    kill_the_connection(f);
    assert_int_equal(try_run(f, "INSERT INTO t VALUES (4, 0)"), STATUS_LOST);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_LOST);
    assert_int_equal(db_begin(f->db, &f->diag), STATUS_LOST);
    ok(f, db_reopen(f->db, &f->diag));
    settings_of(f, after, sizeof(after));
    assert_string_equal(after, before);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 2);
}

static void a_connection_killed_before_the_queue_goes_out_is_lost(void **state)
{
    struct fixture *f = begin_test(state);

    two_rows(f);
    begin(f);
    kill_the_connection(f);
    for (int i = 0; i < 200; i++)
        queue_one(f, "INSERT INTO t VALUES (?1, 0)", 10 + i, 1, i);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_LOST);
    ok(f, db_reopen(f->db, &f->diag));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 2);
}

static void what_cannot_be_reached_is_unavailable(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_options options = {.url = "mysql://u:secret@127.0.0.1:1/d"};
    struct db *db;
    char url[1024];

    assert_int_equal(db_open(&options, &db, &f->diag), STATUS_UNAVAILABLE);
    assert_says(f, "127.0.0.1");
    assert_null(strstr(f->diag.message, "secret"));
    url_of(f, NULL, "no_such_database", 0, url, sizeof(url));
    options.url = url;
    assert_int_equal(db_open(&options, &db, &f->diag), STATUS_UNAVAILABLE);
    assert_says(f, "no_such_database");
}

static void a_read_only_connection_refuses_to_write(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_options options = {
        .url = f->url, .busy_timeout = 1000000, .read_only = true};
    struct db *db;

    two_rows(f);
    ok(f, db_open(&options, &db, &f->diag));
    assert_int_equal(number_from(f, db, "SELECT count(*) FROM t"), 2);
    assert_int_equal(try_on(f, db, "DELETE FROM t"), STATUS_PERMANENT);
    ok(f, db_begin(db, &f->diag));
    assert_int_equal(try_on(f, db, "DELETE FROM t"), STATUS_PERMANENT);
    db_close(db);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 2);
}

/* --- limits --------------------------------------------------------------- */

static void a_row_beyond_the_packet_is_refused_with_both_sizes(void **state)
{
    struct fixture *f = begin_test(state);
    long long most = raw_number(f, "SELECT @@max_allowed_packet");
    size_t size = (size_t)most + 10;
    char *large = malloc(size);
    static const struct db_column columns[] = {{"a", DB_INT64, DB_KEY},
                                               {"b", DB_TEXT, DB_SET}};
    static const struct db_table table = {"t", columns, 2, DB_HOST};
    struct db_value rows[] = {db_integer(1),
                              db_text_value((struct text){large, size})};
    struct db_sql sql = sql_of("INSERT INTO t VALUES (?1, ?2)");
    char number_text[32];

    assert_non_null(large);
    memset(large, 'x', size);
    raw_run(f, "CREATE TABLE t (a INT PRIMARY KEY, b LONGTEXT)"
               " ENGINE = InnoDB");
    snprintf(number_text, sizeof(number_text), "%lld", most);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_INSERT, &table, rows, 1, 7, &f->diag));
    assert_int_equal(db_flush(f->db, NULL, &f->diag), STATUS_PERMANENT);
    assert_says(f, number_text);
    assert_says(f, "table t");
    assert_int_equal(db_failed_tag(f->db), 7);
    db_rollback(f->db);
    assert_int_equal(db_execute(f->db, &sql, rows, 2, NULL, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, number_text);
    /* no reconnect loop: the connection is as good as before */
    rows[1].as.text.len = 1000000;
    ok(f, db_execute(f->db, &sql, rows, 2, NULL, &f->diag));
    free(large);
}

static void a_statement_past_its_deadline_is_interrupted(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_sql sql = script_sql(
        "SELECT count(*) FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b"
        " WHERE a.seq + b.seq = -1");
    int64_t began = clock_monotonic();
    int64_t value;
    bool found;

    begin(f);
    db_deadline(f->db, clock_monotonic() + CLOCK_SECOND / 5);
    assert_int_equal(
        db_query_int64(f->db, &sql, NULL, 0, &value, &found, &f->diag),
        STATUS_FAILED);
    db_deadline(f->db, 0);
    assert_true(clock_monotonic() - began < 10 * CLOCK_SECOND);
    db_rollback(f->db);
    /* the host's own statements have the usual limit again */
    assert_int_equal(number(f, "SELECT @@max_statement_time = 60"), 1);
}

static void the_clock_of_the_database_is_told_in_utc(void **state)
{
    struct fixture *f = begin_test(state);
    int64_t now, off;

    ok(f, db_now(f->db, &now, &f->diag));
    off = now - clock_now(NULL);
    assert_true(off > -60 * CLOCK_SECOND && off < 60 * CLOCK_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(after_a_lock_wait_in_vain_nothing_is_kept),
        with_server(a_lock_wait_in_vain_is_not_undone_by_a_savepoint),
        with_server(queued_statements_do_not_wait_one_after_the_other),
        with_server(
            a_deadlock_ends_the_transaction_and_nothing_commits_by_itself),
        with_server(a_deadlock_of_what_was_sent_last_keeps_the_connection),
        with_server(what_was_sent_after_a_deadlock_does_not_commit),
        with_server(a_deadlock_amid_a_queue_is_a_conflict_of_its_own_statement),
        with_server(a_deadlock_behind_others_is_a_conflict),
        with_server(a_connection_given_up_for_a_lock_says_why),
        with_server(no_table_is_created_inside_a_transaction),
        with_server(one_program_at_a_time_creates_tables),
        with_server(a_poller_sees_what_was_committed_since_it_looked),
        with_server(a_transaction_that_only_reads_keeps_its_view),
        with_server(an_update_to_the_same_value_counts),
        with_server(trailing_spaces_and_case_make_another_key),
        with_server(what_is_too_long_is_refused_and_never_cut),
        with_server(a_killed_connection_is_lost_and_never_replaced_in_silence),
        with_server(a_connection_killed_before_the_queue_goes_out_is_lost),
        with_server(what_cannot_be_reached_is_unavailable),
        with_server(a_read_only_connection_refuses_to_write),
        with_server(a_row_beyond_the_packet_is_refused_with_both_sizes),
        with_server(a_statement_past_its_deadline_is_interrupted),
        with_server(the_clock_of_the_database_is_told_in_utc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
