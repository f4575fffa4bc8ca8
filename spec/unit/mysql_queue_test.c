/* The queue, bulk statements and lookups on MariaDB. */
#include "mysql_support.h"

static void begin_with_table(struct fixture *f)
{
    raw_run(f, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE = InnoDB");
    begin(f);
}

static void queued_statements_run_in_order(void **state)
{
    struct fixture *f = begin_test(state);

    raw_run(f, "CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, a INT)"
               " ENGINE = InnoDB");
    begin(f);
    for (int64_t i = 0; i < 200; i++) {
        queue_one(f, "INSERT INTO log (a) VALUES (?1)", i, 1, i);
        queue_one(f, "UPDATE log SET a = a + 1 WHERE a = ?1", i, i + 1, i);
    }
    ok(f, db_flush(f->db, NULL, &f->diag));
    commit(f);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM log WHERE a = 200"),
                     200);
}

static void a_batch_is_a_few_round_trips(void **state)
{
    struct fixture *f = begin_test(state);
    static const struct db_column columns[] = {{"a", DB_INT64, DB_KEY}};
    static const struct db_table table = {"t", columns, 1, DB_HOST};
    struct db_value rows[2000];
    int64_t before;

    for (int i = 0; i < 2000; i++)
        rows[i] = db_integer(i);
    begin_with_table(f);
    queue_one(f, INSERT, 9001, 1, 1); /* prepared before it is counted */
    ok(f, db_queue_bulk(f->db, DB_INSERT, &table, rows, 1, 1, &f->diag));
    ok(f, db_queue_bulk(f->db, DB_DELETE, &table, rows, 1, 1, &f->diag));
    ok(f, db_flush(f->db, NULL, &f->diag));
    before = db_round_trips(f->db);
    ok(f, db_queue_bulk(f->db, DB_INSERT, &table, rows, 2000, 1, &f->diag));
    ok(f, db_queue_bulk(f->db, DB_DELETE, &table, rows, 2000, 1, &f->diag));
    for (int i = 0; i < 50; i++)
        queue_one(f, INSERT, i, 1, 1);
    commit(f);
    assert_int_equal(db_round_trips(f->db) - before, 2);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 51);
}

static void parameters_are_copied(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_sql sql = sql_of(
        "INSERT INTO t SELECT ?1, ?2, v FROM"
        " JSON_TABLE(?3, '$[*]' COLUMNS (v INT PATH '$')) AS j");
    char text[] = "abc";
    int64_t items[] = {1, 2};
    struct db_value params[] = {
        db_string(text),
        db_bytes((struct text){text, 3}),
        db_integers(items, 2),
    };

    raw_run(f, "CREATE TABLE t (a TEXT, b BLOB, c INT) ENGINE = InnoDB");
    begin(f);
    ok(f, db_queue(f->db, &sql, params, 3, 2, 1, &f->diag));
    memset(text, 'x', 3);
    items[0] = 40;
    items[1] = 50;
    params[0] = db_null();
    commit(f);
    assert_int_equal(
        raw_number(f, "SELECT sum(c) FROM t WHERE a = 'abc' AND b = x'616263'"),
        3);
}

static void rows_that_were_only_read_do_not_count(void **state)
{
    struct fixture *f = begin_test(state);

    begin_with_table(f);
    queue_one(f, INSERT, 1, 1, 1);
    queue_one(f, "SELECT ?1", 5, 0, 2);
    queue_one(f, "INSERT INTO t VALUES (?1) RETURNING a", 2, 1, 3);
    queue_one(f, "INSERT INTO t SELECT 3 FROM t WHERE ?1 = 0", 5, 0, 4);
    commit(f);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 2);
}

static void the_tag_of_the_first_failure_comes_back(void **state)
{
    struct fixture *f = begin_test(state);
    int64_t tag = 0;

    begin_with_table(f);
    queue_one(f, INSERT, 1, 1, 11);
    queue_one(f, INSERT, 1, 1, 12);
    queue_one(f, INSERT, 2, 1, 13);
    queue_one(f, INSERT, 2, 1, 14);
    assert_int_equal(try_run(f, "SELECT 1"), STATUS_UNIQUE);
    assert_string_equal(f->diag.constraint, "PRIMARY");
    assert_int_equal(db_failed_tag(f->db), 12);
    assert_int_equal(db_flush(f->db, &tag, &f->diag), STATUS_UNIQUE);
    assert_int_equal(tag, 12);
    db_rollback(f->db);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), 0);
}

static void
an_error_before_the_server_is_asked_comes_after_earlier_ones(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_sql sql = sql_of(INSERT);
    struct db_value params[] = {db_integer(1), db_integer(2)};

    begin_with_table(f);
    queue_one(f, INSERT, 1, 1, 1);
    queue_one(f, INSERT, 1, 1, 2);
    ok(f, db_queue(f->db, &sql, params, 2, 1, 3, &f->diag));
    assert_int_equal(db_flush(f->db, NULL, &f->diag), STATUS_UNIQUE);
    assert_int_equal(db_failed_tag(f->db), 2);
    db_rollback(f->db);
    begin(f);
    ok(f, db_queue(f->db, &sql, params, 2, 1, 3, &f->diag));
    assert_int_equal(db_flush(f->db, NULL, &f->diag), STATUS_PERMANENT);
    assert_says(f, "1 parameters, but 2 values");
    assert_int_equal(db_failed_tag(f->db), 3);
}

static void a_savepoint_takes_back_what_was_sent_behind_a_failure(void **state)
{
    struct fixture *f = begin_test(state);

    begin_with_table(f);
    queue_one(f, INSERT, 1, 1, 1);
    ok(f, db_savepoint(f->db, &f->diag));
    queue_one(f, INSERT, 2, 1, 2);
    queue_one(f, INSERT, 1, 1, 3);
    queue_one(f, INSERT, 4, 1, 4);
    assert_int_equal(db_flush(f->db, NULL, &f->diag), STATUS_UNIQUE);
    ok(f, db_rollback_to(f->db, &f->diag));
    queue_one(f, INSERT, 5, 1, 5);
    commit(f);
    assert_int_equal(raw_number(f, "SELECT sum(a) FROM t"), 6);
}

/* --- bulk ----------------------------------------------------------------- */

static const struct db_column account_columns[] = {
    {"id", DB_TEXT, DB_KEY},
    {"name", DB_TEXT, DB_SET},
    {"cents", DB_INT64, DB_ADD},
};
static const struct db_table accounts = {"account", account_columns, 3,
                                         DB_HOST};

static void make_accounts(struct fixture *f)
{
    raw_run(f, "CREATE TABLE account (id VARCHAR(20) NOT NULL PRIMARY KEY,"
               " name VARCHAR(20), cents BIGINT, UNIQUE KEY one_name (name))"
               " ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4"
               " COLLATE utf8mb4_nopad_bin");
    raw_run(f,
            "INSERT INTO account VALUES ('a', 'ann', 5), ('b', 'bob', NULL)");
}

static void an_upsert_never_changes_the_row_of_another_key(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_value rows[] = {
        db_string("c"), db_string("new"), db_integer(1),
        db_string("d"), db_string("ann"), db_integer(100),
    };

    make_accounts(f);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_UPSERT, &accounts, rows, 2, 1, &f->diag));
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_PERMANENT);
    assert_says(f, "another row of table account");
    assert_int_equal(raw_number(f, "SELECT count(*) FROM account"), 2);
    assert_int_equal(raw_number(f, "SELECT cents FROM account WHERE id = 'a'"),
                     5);
}

static void an_insert_of_a_key_that_is_there_names_the_key(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_value rows[] = {
        db_string("x"),   db_string("for key 'PRIMARY'"),
        db_integer(1),    db_string("y"),
        db_string("ann"), db_integer(1),
    };

    make_accounts(f);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_INSERT, &accounts, rows, 2, 3, &f->diag));
    assert_int_equal(db_flush(f->db, NULL, &f->diag), STATUS_UNIQUE);
    assert_string_equal(f->diag.constraint, "one_name");
    assert_int_equal(db_failed_tag(f->db), 3);
}

static const struct db_column guarded_columns[] = {
    {"cents", DB_INT64, DB_SET},
    {"id", DB_TEXT, DB_KEY},
    {"name", DB_TEXT, DB_GUARD},
};
static const struct db_table guarded = {"account", guarded_columns, 3, DB_HOST};

static void an_update_whose_guard_differs_is_a_conflict(void **state)
{
    struct fixture *f = begin_test(state);
    struct db_value rows[] = {
        db_integer(10), db_string("a"), db_string("ann"),
        db_integer(20), db_string("b"), db_string("bill"),
    };

    make_accounts(f);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_UPDATE, &guarded, rows, 1, 1, &f->diag));
    commit(f);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_UPDATE, &guarded, rows, 2, 4, &f->diag));
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_UPDATE, &guarded, rows + 3, 1, 4, &f->diag));
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    assert_says(f, "\"b\"");
    assert_int_equal(
        raw_number(f, "SELECT sum(coalesce(cents, 0)) FROM account"), 10);
}

static void a_delete_obeys_key_and_guard(void **state)
{
    struct fixture *f = begin_test(state);
    static const struct db_table table = {"account", guarded_columns + 1, 2,
                                          DB_HOST};
    struct db_value rows[] = {db_string("a"), db_string("ann"), db_string("b"),
                              db_string("nobody")};

    make_accounts(f);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_DELETE, &table, rows, 2, 1, &f->diag));
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_DELETE, &table, rows, 1, 1, &f->diag));
    commit(f);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM account"), 1);
}

static void rows_of_many_sizes_and_nulls_arrive_whole(void **state)
{
    struct fixture *f = begin_test(state);
    static const size_t sizes[] = {0, 1, 255, 256, 65535, 65536, 3000000};
    enum { COUNT = 9000, LONG = 3000000 };
    static const struct db_column columns[] = {
        {"a", DB_INT64, DB_KEY},     {"b", DB_TEXT, DB_SET},
        {"c", DB_TIMESTAMP, DB_SET}, {"d", DB_DOUBLE, DB_SET},
        {"e", DB_BOOL, DB_SET},
    };
    static const struct db_table table = {"t", columns, 5, DB_HOST};
    struct db_value *rows = calloc(COUNT * 5, sizeof(*rows));
    char *text = malloc(LONG);
    long long bytes = 0;

    assert_non_null(rows);
    assert_non_null(text);
    memset(text, 'x', LONG);
    for (int i = 0; i < COUNT; i++) {
        size_t size = i % 1000 < 7 ? sizes[i % 1000] : 20;
        struct db_value *row = rows + i * 5;

        row[0] = db_integer(i);
        row[1] = db_text_value((struct text){text, size});
        row[2] = i % 3 == 0 ? db_null() : db_timestamp(1000000);
        row[3] = i % 5 == 0 ? db_null() : db_number(0.5);
        row[4] = i % 7 == 0 ? db_null() : db_boolean(i % 2 == 0);
        bytes += (long long)size;
    }
    raw_run(f, "CREATE TABLE t (a INT PRIMARY KEY, b LONGTEXT NOT NULL,"
               " c DATETIME(6), d DOUBLE, e TINYINT) ENGINE = InnoDB");
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_INSERT, &table, rows, COUNT, 1, &f->diag));
    commit(f);
    assert_int_equal(raw_number(f, "SELECT sum(length(b)) FROM t"), bytes);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t WHERE c IS NULL"),
                     3000);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t WHERE"
                                   " c = '1970-01-01 00:00:01' AND a % 3 <> 0"),
                     6000);
    assert_int_equal(raw_number(f, "SELECT sum(d) FROM t"), 3600);
    assert_int_equal(
        raw_number(f, "SELECT count(*) FROM t WHERE e = (a % 2 = 0)"),
        COUNT - (COUNT + 6) / 7);
    free(rows);
    free(text);
}

static void a_column_of_several_types_keeps_every_value(void **state)
{
    struct fixture *f = begin_test(state);
    static const struct db_column columns[] = {{"a", DB_INT64, DB_KEY},
                                               {"b", DB_TEXT, DB_SET}};
    static const struct db_table table = {"t", columns, 2, DB_HOST};
    struct db_value rows[] = {
        db_integer(1),     db_integer(INT64_MAX), db_integer(2),
        db_string("text"), db_integer(3),         db_number(0.1),
    };

    raw_run(f, "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40))"
               " ENGINE = InnoDB");
    begin(f);
    ok(f, db_queue_bulk(f->db, DB_INSERT, &table, rows, 3, 1, &f->diag));
    commit(f);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t WHERE (a, b) IN"
                                   " ((1, '9223372036854775807'), (2, 'text'),"
                                   " (3, '0.10000000000000001'))"),
                     3);
}

/* --- lookup --------------------------------------------------------------- */

#define KEYS 1300

struct seen {
    int count[KEYS];
    int64_t sum;
};

static enum status on_row(void *arg, size_t index, struct db_rows *row,
                          struct diag *diag)
{
    struct seen *seen = arg;

    (void)diag;
    assert_int_equal(db_columns(row), 1);
    seen->count[index]++;
    seen->sum += db_get_int64(row, 0);
    return STATUS_OK;
}

static void a_lookup_tells_which_keys_have_a_row(void **state)
{
    struct fixture *f = begin_test(state);
    static const struct db_column columns[] = {{"k", DB_TEXT, DB_KEY},
                                               {"n", DB_INT64, DB_SET}};
    static const struct db_table table = {"t", columns, 2, DB_HOST};
    static char names[KEYS][16];
    struct text keys[KEYS];
    int64_t before;

    raw_run(f, "CREATE TABLE t (n INT, k VARCHAR(20) NOT NULL PRIMARY KEY)"
               " ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4"
               " COLLATE utf8mb4_nopad_bin");
    raw_run(f, "INSERT INTO t SELECT seq, concat('K', seq) FROM seq_0_to_1999"
               " WHERE seq % 2 = 0");
    raw_run(f, "INSERT INTO t VALUES (1000000, 'k1'), (1000000, 'K1 ')");
    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof(names[i]), "K%d", i);
        keys[i] = text_of(names[i]);
    }
    begin(f);
    before = db_round_trips(f->db);
    for (size_t count = 0; count <= KEYS; count += count < 70 ? 7 : 410) {
        struct seen seen = {.sum = 0};
        int64_t sum = 0;

        ok(f, db_lookup(f->db, &table, keys, count, on_row, &seen, &f->diag));
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(seen.count[i], i % 2 == 0);
            sum += i % 2 == 0 ? (int64_t)i : 0;
        }
        assert_int_equal(seen.sum, sum);
    }
    assert_true(db_round_trips(f->db) - before < 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(queued_statements_run_in_order),
        with_server(a_batch_is_a_few_round_trips),
        with_server(parameters_are_copied),
        with_server(rows_that_were_only_read_do_not_count),
        with_server(the_tag_of_the_first_failure_comes_back),
        with_server(
            an_error_before_the_server_is_asked_comes_after_earlier_ones),
        with_server(a_savepoint_takes_back_what_was_sent_behind_a_failure),
        with_server(an_upsert_never_changes_the_row_of_another_key),
        with_server(an_insert_of_a_key_that_is_there_names_the_key),
        with_server(an_update_whose_guard_differs_is_a_conflict),
        with_server(a_delete_obeys_key_and_guard),
        with_server(rows_of_many_sizes_and_nulls_arrive_whole),
        with_server(a_column_of_several_types_keeps_every_value),
        with_server(a_lookup_tells_which_keys_have_a_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
