/*
 * The SQL function for writers in other languages keeps the rules of
 * topic/append.c, for the shared table and for an aggregate's own.
 */
#include "db_support.h"

#include "schema/schema.h"
#include "topic/append.h"

#define OWN_TYPE  "shop.Order"
#define OWN_TABLE "SHOP_ORDER_EVENTS"

struct writer {
    struct fixture f;
    struct names names;
};

static int writer_setup(void **state)
{
    struct writer *w = calloc(1, sizeof(*w));
    struct schema_options schema = {.partitions = 12, .create = true};
    void *made;

    postgres_setup(&made);
    w->f = *(struct fixture *)made;
    free(made);
    names_default(&w->names);
    ok(&w->f,
       names_aggregate(&w->names, OWN_TYPE, OWN_TABLE, NULL, &w->f.diag));
    schema.names = &w->names;
    ok(&w->f, schema_prepare(w->f.db, &schema, &w->f.diag));
    *state = w;
    return 0;
}

static int writer_teardown(void **state)
{
    struct writer *w = *state;
    struct fixture *f = malloc(sizeof(*f));
    void *made = f;

    names_free(&w->names);
    *f = w->f;
    free(w);
    return postgres_teardown(&made);
}

/* Calls the function with the arguments behind `expected` as SQL; the position
 * of the last event, or how it failed. */
static enum status call(struct writer *w, struct db *db, const char *table,
                        const char *id, const char *expected,
                        const char *events, int64_t *position)
{
    char text[1024];
    struct db_value params[] = {db_string(id), db_string(expected)};
    struct db_sql sql;
    bool found;

    snprintf(text, sizeof(text),
             "SELECT max(global_position) FROM moontide_append(NULL::%s,"
             " 'spec.thing', ?1, ?2, %s)",
             table, events);
    sql = sql_of(text);
    return db_query_int64(db, &sql, params, 2, position, &found, &w->f.diag);
}

static int64_t append(struct writer *w, const char *id, const char *expected,
                      const char *events)
{
    int64_t position = 0;

    ok(&w->f, call(w, w->f.db, "event_store", id, expected, events, &position));
    return position;
}

static void refused(struct writer *w, const char *id, const char *expected,
                    const char *events, const char *says)
{
    int64_t position;

    assert_int_equal(
        call(w, w->f.db, "event_store", id, expected, events, &position),
        STATUS_PERMANENT);
    assert_says(&w->f, says);
}

#define ONE     "'{t}', '{1}'"
#define WITH_ID ", ids => '{" ID "}'"
#define ID      "0190b8a0-0000-7000-8000-0123456789ab"

static void partitions_are_those_of_the_host(void **state)
{
    struct writer *w = *state;
    static const struct {
        const char *id;
        int partition;
    } vectors[] = {{"caf\xc3\xa9-42", 6},
                   {"order-1", 1},
                   {"\xc3\x9cn\xc3\xaf"
                    "code",
                    3},
                   {"\xe6\x97\xa5\xe6\x9c\xac-7", 5}};
    struct db_sql sql = sql_of("SELECT partition_key FROM event_store"
                               " WHERE aggregate_id = ?1");

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct db_value param = db_string(vectors[i].id);
        int64_t partition = -1;
        bool found;

        append(w, vectors[i].id, "none", ONE);
        ok(&w->f, db_query_int64(w->f.db, &sql, &param, 1, &partition, &found,
                                 &w->f.diag));
        assert_int_equal(partition, vectors[i].partition);
    }
}

static void payloads_keep_every_byte(void **state)
{
    struct writer *w = *state;

    append(w, "a", "any",
           "'{t}', ARRAY[' {\"b\" : 1.0,\t\"a\":\"\\u0000\","
           " \"b\":9007199254740993}']::json[], ARRAY['{ }']::json[]");
    assert_int_equal(
        number(&w->f, "SELECT count(*) FROM event_store WHERE payload::text ="
                      " ' {\"b\" : 1.0,\t\"a\":\"\\u0000\","
                      " \"b\":9007199254740993}' AND metadata::text = '{ }'"),
        1);
}

static void sequence_numbers_and_positions_rise_in_the_order_given(void **state)
{
    struct writer *w = *state;

    append(w, "a", "none", "'{t,t,t}', '{0,1,2}'");
    append(w, "a", "2", "'{t}', '{3}'");
    assert_int_equal(number(&w->f, "SELECT count(*) FROM event_store WHERE"
                                   " payload::text = sequence_no::text"
                                   " AND global_position = sequence_no + 1"),
                     4);
}

static void the_expected_place_is_checked(void **state)
{
    struct writer *w = *state;

    refused(w, "a", "0", ONE, "expected sequence number 0, but it has no");
    append(w, "a", "none", ONE);
    refused(w, "a", "none", ONE, "last event has sequence number 0");
    assert_says(&w->f, "MT001");
    append(w, "a", "0", ONE);
    append(w, "a", "any", ONE);
    refused(w, "a", "maybe", ONE, "expected is");
}

static void a_repeated_event_gives_the_first_result(void **state)
{
    struct writer *w = *state;
    const char *event = ONE WITH_ID;
    int64_t first = append(w, "a", "none", event);

    assert_int_equal(append(w, "a", "none", event), first);
    assert_int_equal(number(&w->f, "SELECT count(*) FROM event_store"), 1);
    refused(w, "a", "any", "'{t}', '{2}'" WITH_ID, "another payload");
    assert_says(&w->f, "MT002");
    refused(w, "b", "any", event, "another aggregate_id");
}

static void bad_fields_are_refused(void **state)
{
    struct writer *w = *state;
    static const char *const bad[][2] = {
        {"'{t,t}', '{1}'", "different lengths"},
        {"'{t}', '{1}', ids => '{NULL,NULL}'", "different lengths"},
        {"'{t}', '{NULL}'", "payload is missing"},
        {"'{t}', '{nul}'", "json"},
        {"'{NULL}', '{1}'", "type takes"},
        {"ARRAY[''], '{1}'", "type takes"},
        {"'{t}', '{1}', metadata => '{1}'", "not a JSON object"},
        {"'{t}', '{1}', metadata => '{null2}'", "json"},
        {"'{t}', '{1}', revisions => '{-1}'", "revision"},
        {"'{t}', '{1}', times => '{infinity}'", "the years"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refused(w, "a", "any", bad[i][0], bad[i][1]);
    refused(w, "", "any", ONE, "aggregate_id");
    assert_int_equal(number(&w->f, "SELECT count(*) FROM event_store"), 0);
}

static void an_own_table_has_its_own(void **state)
{
    struct writer *w = *state;
    int64_t position;

    append(w, "a", "none", ONE);
    ok(&w->f, call(w, w->f.db, OWN_TABLE, "a", "none", ONE, &position));
    assert_int_equal(position, 2);
    assert_int_equal(number(&w->f, "SELECT count(*) FROM " OWN_TABLE), 1);
}

static void a_faster_writer_is_a_conflict(void **state)
{
    struct writer *w = *state;
    struct db *other = fixture_connect_hasty(&w->f);
    int64_t position;

    begin(&w->f);
    ok(&w->f, call(w, w->f.db, "event_store", "a", "none", ONE, &position));
    /* waits for the other one's row, not longer than its lock timeout */
    assert_int_equal(call(w, other, "event_store", "a", "none", ONE, &position),
                     STATUS_CONFLICT);
    commit(&w->f);
    db_close(other);
}

static void the_transaction_has_its_id_before_its_position(void **state)
{
    struct writer *w = *state;
    int64_t position;

    /* a call that fails behind the drawing leaves id and position */
    ok(&w->f, db_begin(w->f.db, &w->f.diag));
    ok(&w->f,
       call(w, w->f.db, "event_store", "a", "any", "'{}', '{}'", &position));
    assert_int_equal(number(&w->f,
                            "SELECT CASE WHEN pg_current_xact_id_if_assigned()"
                            " IS NULL THEN 0 ELSE 1 END"),
                     1);
    db_rollback(w->f.db);
}

static void an_older_copy_takes_no_events(void **state)
{
    struct writer *w = *state;

    append(w, "a", "any", ONE);
    run(&w->f, "UPDATE high_water_mark_store SET high_water_mark = 7"
               " WHERE topic_name = 'event-store'");
    refused(w, "a", "any", ONE, "older copy");
    assert_says(&w->f, "MT003");
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, writer_setup, writer_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(partitions_are_those_of_the_host),
        TEST(payloads_keep_every_byte),
        TEST(sequence_numbers_and_positions_rise_in_the_order_given),
        TEST(the_expected_place_is_checked),
        TEST(a_repeated_event_gives_the_first_result),
        TEST(bad_fields_are_refused),
        TEST(an_own_table_has_its_own),
        TEST(a_faster_writer_is_a_conflict),
        TEST(the_transaction_has_its_id_before_its_position),
        TEST(an_older_copy_takes_no_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
