/* The procedure by which programs in other languages append, and the host's
 * own append and reads beside it. */
#include "mysql_support.h"

#include "base/hash.h"
#include "db/mysql_scan.h"
#include "schema/schema.h"
#include "topic/append.h"

#include <pthread.h>

#define PARTITIONS 12
#define OWN_TYPE   "shop.Order"
#define OWN_TABLE  "SHOP_ORDER_EVENTS"

struct store {
    struct names names;
    struct catalog *catalog;
    struct event_store *store;
    struct uuid_source ids;
};

static void open_store(struct fixture *f, struct store *s)
{
    struct schema_options options = {
        .names = &s->names, .partitions = PARTITIONS, .create = true};

    *s = (struct store){.catalog = NULL};
    names_default(&s->names);
    ok(f, names_aggregate(&s->names, OWN_TYPE, OWN_TABLE, NULL, &f->diag));
    ok(f, schema_prepare(f->db, &options, &f->diag));
    ok(f, schema_verify(f->db, &options, &f->diag));
    ok(f, catalog_open("mysql", s->names.fill, &s->catalog, &f->diag));
    ok(f, event_store_open("mysql", &s->names, s->catalog, PARTITIONS,
                           &s->store, &f->diag));
}

static void close_store(struct store *s)
{
    event_store_close(s->store);
    catalog_close(s->catalog);
    names_free(&s->names);
}

/* The host's append of one event. */
static enum status host_append(struct fixture *f, struct store *s,
                               struct append_event event,
                               struct append_result *result)
{
    struct append_options options = {
        .ids = &s->ids, .now_us = 1, .payload_limit = 1 << 20};
    size_t bad;
    enum status status;

    begin(f);
    status = append_events(s->store, f->db, &options, &event, 1, result, &bad,
                           &f->diag);
    if (status == STATUS_OK)
        status = db_commit(f->db, NULL, &f->diag);
    db_rollback(f->db);
    return status;
}

/* CALL with bound values; the message of a refusal, "" when there is none. */
static char message[MYSQL_ERRMSG_SIZE];

static const char *call_on(MYSQL *raw, const char *routine, const char *type,
                           const char *id, const char *expected,
                           const char *events)
{
    const char *texts[] = {type, id, expected, events};
    size_t size = 1000;
    char *sql;
    char *at;

    for (int i = 0; i < 4; i++)
        size += 2 * strlen(texts[i]) + 4;
    sql = malloc(size);
    assert_non_null(sql);
    at = sql + sprintf(sql, "CALL %s(", routine);
    for (int i = 0; i < 4; i++) {
        at += sprintf(at, "%s'", i > 0 ? "," : "");
        at += mysql_real_escape_string(raw, at, texts[i], strlen(texts[i]));
        *at++ = '\'';
    }
    *at++ = ')';
    message[0] = '\0';
    if (mysql_real_query(raw, sql, (unsigned long)(at - sql)) != 0) {
        snprintf(message, sizeof(message), "%s", mysql_error(raw));
    } else {
        do {
            MYSQL_RES *result = mysql_store_result(raw);

            if (result != NULL)
                mysql_free_result(result);
        } while (mysql_next_result(raw) == 0);
        snprintf(message, sizeof(message), "%s", mysql_error(raw));
    }
    free(sql);
    return message;
}

static const char *call(struct fixture *f, const char *id, const char *expected,
                        const char *events)
{
    raw_run(f, "SET NAMES utf8mb4");
    return call_on(f->raw, "moontide_append", "t.T", id, expected, events);
}

static void accept(struct fixture *f, const char *id, const char *expected,
                   const char *events)
{
    if (call(f, id, expected, events)[0] != '\0')
        fail_msg("%s: %s", events, message);
}

static void refuse(struct fixture *f, const char *id, const char *expected,
                   const char *events, const char *says)
{
    long long before = raw_number(
        f, "SELECT (SELECT count(*) FROM EVENT_STORE) * 1000 + val"
           " FROM EVENT_STORE_GLOBAL_POSITION");

    if (strstr(call(f, id, expected, events), says) == NULL)
        fail_msg("%s: \"%s\" is not in: %s", events, says, message);
    assert_string_equal(mysql_sqlstate(f->raw), "45000");
    assert_int_equal(
        raw_number(f, "SELECT (SELECT count(*) FROM EVENT_STORE) * 1000 + val"
                      " FROM EVENT_STORE_GLOBAL_POSITION"),
        before);
}

#define ONE "[{\"type\":\"x\",\"payload\":1}]"

static void the_schema_is_made_once_and_found_complete(void **state)
{
    struct fixture *f = begin_test(state);
    struct schema_options options = {.partitions = PARTITIONS, .create = true};
    struct buffer report = BUFFER_EMPTY;
    struct store s;

    open_store(f, &s);
    options.names = &s.names;
    ok(f, schema_upgrade(f->db, &options, &report, &f->diag));
    assert_non_null(strstr(report.data, "nothing to do"));
    options.partitions = PARTITIONS + 1;
    assert_int_equal(schema_prepare(f->db, &options, &f->diag), STATUS_REFUSED);
    assert_int_equal(
        raw_number(f, "SELECT count(*) FROM information_schema.columns WHERE"
                      " table_schema = DATABASE() AND collation_name NOT IN"
                      " ('utf8mb4_nopad_bin', 'ascii_bin')"),
        0);
    buffer_free(&report);
    close_store(&s);
}

static void every_statement_fits_the_tables(void **state)
{
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    raw_run(f, "SET sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'");
    for (int i = 0; i < SQL_COUNT; i++) {
        enum sql_statement statement = (enum sql_statement)i;
        bool absent = catalog_raw("mysql", statement).data == NULL;
        struct text text = absent ? TEXT_LITERAL("SELECT 1")
                                  : catalog_sql(s.catalog, statement)->text;
        struct mysql_marks marks = {.numbers = NULL};
        struct buffer plain = BUFFER_EMPTY;
        MYSQL_STMT *stmt = mysql_stmt_init(f->raw);

        mysql_scan_marks(text, &plain, &marks);
        if (mysql_stmt_prepare(stmt, plain.data, plain.len) != 0)
            fail_msg("%s in: %s", mysql_stmt_error(stmt), plain.data);
        mysql_stmt_close(stmt);
        free(marks.numbers);
        buffer_free(&plain);
    }
    close_store(&s);
}

static void partitions_are_those_of_the_host(void **state)
{
    static const char *const ids[] = {
        "order-1",
        "caf\xc3\xa9-42",
        "\303\234n\303\257code",
        "\xe6\x97\xa5\xe6\x9c\xac-7",
        "a",
        " ",
        "A-1 ",
    };
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        accept(f, ids[i], "none", ONE);
        assert_int_equal(
            raw_number(f, "SELECT partition_key FROM EVENT_STORE ORDER BY"
                          " global_position DESC LIMIT 1"),
            hash_partition(text_of(ids[i]), PARTITIONS));
    }
    close_store(&s);
}

static void what_breaks_a_rule_is_refused_and_named(void **state)
{
    struct fixture *f = begin_test(state);
    char text[600];
    struct store s;

    open_store(f, &s);
    refuse(f, "", "any", ONE, "aggregate_id");
    memset(text, 'x', 256);
    text[256] = '\0';
    refuse(f, text, "any", ONE, "aggregate_id");
    refuse(f, "a", "5x", ONE, "expected");
    refuse(f, "a", "-1", ONE, "expected");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":1}", "not valid JSON");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":1.}]",
           "not valid JSON");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":\"\\x\"}]",
           "not valid JSON");
    refuse(f, "a", "any", "{\"type\":\"x\",\"payload\":1}", "JSON array");
    refuse(f, "a", "any", "[5]", "event 1: it is not an object");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":1},{\"payload\":1}]",
           "event 2: type");
    refuse(f, "a", "any", "[{\"type\":\"\",\"payload\":1}]", "type");
    refuse(f, "a", "any", "[{\"type\":7,\"payload\":1}]", "type");
    refuse(f, "a", "any", "[{\"type\":\"x\"}]", "payload is missing");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":1,\"metadata\":[]}]",
           "metadata");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":1,\"id\":\"7\"}]",
           "UUID");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":1,\"revision\":-1}]",
           "revision");
    refuse(f, "a", "any",
           "[{\"type\":\"x\",\"payload\":1,\"revision\":2147483648}]",
           "revision");
    refuse(f, "a", "any",
           "[{\"type\":\"x\",\"payload\":1,\"occurred_at\":\"yesterday\"}]",
           "occurred_at");
    refuse(f, "a", "any",
           "[{\"type\":\"x\",\"payload\":1,"
           "\"occurred_at\":\"2026-02-30T00:00:00Z\"}]",
           "occurred_at");
    refuse(f, "a", "any", "[{\"type\":\"x\",\"payload\":1,\"metdata\":{}}]",
           "unknown field");
    close_store(&s);
}

static void an_expected_sequence_number_is_held_against_the_stream(void **state)
{
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    refuse(f, "a", "0", ONE, "expected sequence number 0, but it has no event");
    accept(f, "a", "none", ONE);
    refuse(f, "a", "none", ONE,
           "expected no event, but its last event has"
           " sequence number 0");
    accept(f, "a", "0",
           "[{\"type\":\"x\",\"payload\":1},"
           "{\"type\":\"x\",\"payload\":2}]");
    refuse(f, "a", "1", ONE, "sequence number 2");
    accept(f, "A", "none", ONE); /* another stream */
    assert_int_equal(raw_number(f, "SELECT count(*) FROM EVENT_STORE"), 4);
    assert_int_equal(raw_number(f, "SELECT val FROM"
                                   " EVENT_STORE_GLOBAL_POSITION"),
                     4);
    close_store(&s);
}

#define ID_A "0190f1d2-0000-7000-8000-00000000000a"

static void the_same_id_again_is_written_once(void **state)
{
    static const char event[] =
        "[{\"type\":\"x\",\"payload\":{ \"a\" : 1.0 },\"id\":\"" ID_A "\","
        "\"metadata\":{\"m\":1},\"occurred_at\":\"2026-01-31T09:00:00.5+01:00\""
        "}]";
    struct fixture *f = begin_test(state);
    struct append_event again = {
        .aggregate_type = TEXT_LITERAL("t.T"),
        .aggregate_id = TEXT_LITERAL("a"),
        .type = TEXT_LITERAL("x"),
        .payload = TEXT_LITERAL("{ \"a\" : 1.0 }"),
        .metadata = TEXT_LITERAL("{\"m\":1}"),
        .has_id = true,
        .has_occurred_at = true,
    };
    struct append_result result;
    struct store s;

    open_store(f, &s);
    accept(f, "a", "none", event);
    accept(f, "a", "none", event);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM EVENT_STORE"), 1);
    /* the host finds it the same, too: byte for byte */
    assert_true(uuid_parse(text_of(ID_A), &again.id));
    ok(f, clock_parse(TEXT_LITERAL("2026-01-31T08:00:00.500000Z"),
                      &again.occurred_at, &f->diag));
    ok(f, host_append(f, &s, again, &result));
    assert_true(result.repeated);
    assert_int_equal(result.position, 1);
    refuse(f, "a", "any",
           "[{\"type\":\"x\",\"payload\":{ \"a\" : 1 },\"id\":\"" ID_A "\"}]",
           "stored at position 1 with other content");
    refuse(f, "b", "any", event, "other content");
    refuse(f, "b", "any",
           "[{\"type\":\"x\",\"payload\":1,\"id\":\"" ID_A "b\"}]", "UUID");
    refuse(f, "c", "any",
           "[{\"type\":\"x\",\"payload\":1,"
           "\"id\":\"0190f1d2-0000-7000-8000-00000000000c\"},"
           "{\"type\":\"x\",\"payload\":2,"
           "\"id\":\"0190F1D2-0000-7000-8000-00000000000C\"}]",
           "earlier in the same batch");
    close_store(&s);
}

static void payloads_are_kept_byte_for_byte(void **state)
{
    static const char *const payloads[] = {
        "{ \"b\" : 1.50e3,\t\"a\":[1, 2 ,3] }",
        "9007199254740993",
        "-0.0",
        "\"\\u0000\\/\\u00e9 \xc3\xa9 \xf0\x9f\x98\x80\"",
        "null",
        "[ ]",
        "{\"a\":1,\"a\":2}",
        "\"'' ` ? ; -- \\\\\"",
    };
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        char events[300], stored[300];

        snprintf(events, sizeof(events),
                 "[ {\"payload\": %s , \"type\":\"x\"}]", payloads[i]);
        accept(f, "a", "any", events);
        raw_text(f,
                 "SELECT payload FROM EVENT_STORE ORDER BY global_position"
                 " DESC LIMIT 1",
                 stored, sizeof(stored));
        assert_string_equal(stored, payloads[i]);
    }
    close_store(&s);
}

static void many_large_events_pass_in_one_call(void **state)
{
    enum { COUNT = 200, SIZE = 20000 };
    struct fixture *f = begin_test(state);
    struct buffer events = BUFFER_EMPTY;
    struct store s;

    open_store(f, &s);
    for (int i = 0; i < COUNT; i++) {
        buffer_append_string(&events, i == 0 ? "[" : ",");
        buffer_append_string(&events, "{\"type\":\"x\",\"payload\":[0");
        for (int j = 0; j < SIZE / 10; j++)
            buffer_append_string(&events, ",\"\\\"a\",1.5");
        buffer_append_string(&events, "]}");
    }
    buffer_append_char(&events, ']');
    accept(f, "a", "none", events.data);
    assert_int_equal(raw_number(f, "SELECT max(sequence_no) FROM EVENT_STORE"),
                     COUNT - 1);
    buffer_free(&events);
    close_store(&s);
}

static void a_call_outside_of_a_transaction_is_one(void **state)
{
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    raw_run(f, "CREATE TRIGGER refuse BEFORE INSERT ON EVENT_STORE FOR EACH ROW"
               " IF NEW.event_type = 'bad' THEN SIGNAL SQLSTATE '45000'"
               " SET MESSAGE_TEXT = 'not this one'; END IF");
    refuse(f, "a", "any",
           "[{\"type\":\"x\",\"payload\":1},{\"type\":\"bad\",\"payload\":1}]",
           "not this one");
    assert_int_equal(raw_number(f, "SELECT @@in_transaction"), 0);
    accept(f, "a", "any", ONE);
    assert_int_equal(raw_number(f, "SELECT @@in_transaction"), 0);
    close_store(&s);
}

static void a_call_belongs_to_the_transaction_of_its_caller(void **state)
{
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    raw_run(f, "CREATE TABLE mine (a INT) ENGINE = InnoDB");
    raw_run(f, "BEGIN");
    raw_run(f, "INSERT INTO mine VALUES (1)");
    accept(f, "a", "any", ONE);
    raw_run(f, "ROLLBACK");
    assert_int_equal(raw_number(f, "SELECT count(*) FROM mine"), 0);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM EVENT_STORE"), 0);
    assert_int_equal(raw_number(f, "SELECT val FROM"
                                   " EVENT_STORE_GLOBAL_POSITION"),
                     0);
    close_store(&s);
}

/* At REPEATABLE READ, the server's default, plain reads see the past. */
static void an_old_view_of_the_caller_does_not_matter(void **state)
{
    struct fixture *f = begin_test(state);
    MYSQL *old;
    struct store s;

    open_store(f, &s);
    old = raw_connect(f, NULL, f->name);
    raw_run_on(old, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    raw_run_on(old, "BEGIN");
    raw_run_on(old, "SELECT * FROM EVENT_STORE");
    accept(f, "a", "none", ONE);
    accept(f, "a", "0", ONE);
    if (call_on(old, "moontide_append", "t.T", "a", "1", ONE)[0] != '\0')
        fail_msg("%s", message);
    raw_run_on(old, "COMMIT");
    mysql_close(old);
    assert_int_equal(raw_number(f, "SELECT max(sequence_no) FROM EVENT_STORE"),
                     2);
    close_store(&s);
}

/* --- writers side by side --------------------------------------------------
 */

struct writer {
    MYSQL *raw;
    int number;
    int failed;
};

static void *write_many(void *arg)
{
    struct writer *w = arg;

    for (int i = 0; i < 40; i++) {
        char sql[200];

        snprintf(sql, sizeof(sql),
                 "CALL moontide_append('t.T', 'stream-%d', 'any', '" ONE "')",
                 i % 3);
        if (mysql_query(w->raw, sql) != 0) {
            w->failed++;
            continue;
        }
        do {
            MYSQL_RES *result = mysql_store_result(w->raw);

            if (result != NULL)
                mysql_free_result(result);
        } while (mysql_next_result(w->raw) == 0);
        w->failed += mysql_errno(w->raw) != 0;
    }
    return NULL;
}

static void writers_side_by_side_leave_no_gap_and_no_double(void **state)
{
    enum { WRITERS = 4 };
    struct fixture *f = begin_test(state);
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    struct store s;
    int host_wrote = 0;

    open_store(f, &s);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.raw = raw_connect(f, NULL, f->name),
                                     .number = i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
    }
    for (int i = 0; i < 40; i++) {
        struct append_event event = {
            .aggregate_type = TEXT_LITERAL("t.T"),
            .aggregate_id = TEXT_LITERAL("stream-1"),
            .type = TEXT_LITERAL("x"),
            .payload = TEXT_LITERAL("1"),
        };
        struct append_result result;
        enum status status = host_append(f, &s, event, &result);

        if (status != STATUS_CONFLICT)
            ok(f, status);
        host_wrote += status == STATUS_OK;
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failed, 0);
        mysql_close(writers[i].raw);
    }
    assert_int_equal(raw_number(f, "SELECT count(*) FROM EVENT_STORE"),
                     WRITERS * 40 + host_wrote);
    assert_int_equal(
        raw_number(f, "SELECT max(global_position) = count(*) AND"
                      " max(global_position) = (SELECT val FROM"
                      " EVENT_STORE_GLOBAL_POSITION) FROM EVENT_STORE"),
        1);
    assert_int_equal(
        raw_number(f, "SELECT count(*) FROM (SELECT global_position,"
                      " lag(global_position) OVER (PARTITION BY aggregate_id"
                      " ORDER BY sequence_no) AS before_it FROM EVENT_STORE)"
                      " AS x WHERE before_it > global_position"),
        0);
    close_store(&s);
}

static void an_own_table_has_a_procedure_of_its_own(void **state)
{
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    accept(f, "a", "none", ONE);
    if (call_on(f->raw, "append_" OWN_TABLE, OWN_TYPE, "a", "none", ONE)[0] !=
        '\0')
        fail_msg("%s", message);
    assert_int_equal(raw_number(f, "SELECT global_position FROM " OWN_TABLE
                                   " WHERE sequence_no = 0"),
                     2);
    close_store(&s);
}

static void an_older_copy_is_refused(void **state)
{
    struct fixture *f = begin_test(state);
    struct store s;

    open_store(f, &s);
    accept(f, "a", "none", ONE);
    raw_run(f, "UPDATE HIGH_WATER_MARK_STORE SET high_water_mark = 9");
    refuse(f, "a", "any", ONE, "below its high-water mark 9");
    close_store(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(the_schema_is_made_once_and_found_complete),
        with_server(every_statement_fits_the_tables),
        with_server(partitions_are_those_of_the_host),
        with_server(what_breaks_a_rule_is_refused_and_named),
        with_server(an_expected_sequence_number_is_held_against_the_stream),
        with_server(the_same_id_again_is_written_once),
        with_server(payloads_are_kept_byte_for_byte),
        with_server(many_large_events_pass_in_one_call),
        with_server(a_call_outside_of_a_transaction_is_one),
        with_server(a_call_belongs_to_the_transaction_of_its_caller),
        with_server(an_old_view_of_the_caller_does_not_matter),
        with_server(writers_side_by_side_leave_no_gap_and_no_double),
        with_server(an_own_table_has_a_procedure_of_its_own),
        with_server(an_older_copy_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
