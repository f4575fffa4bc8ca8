/*
 * Append: numbering, positions, expected sequence numbers, repeats by id, the
 * checks of an event, and the number of statements of a call.
 */
#include "topic_fixture.h"

#include "base/hash.h"

#define ID_1 "0190f6a0-0000-7000-8000-000000000001"
#define ID_2 "0190f6a0-0000-7000-8000-000000000002"

static struct append_event expecting(struct append_event event, int64_t last)
{
    event.expect = APPEND_AT;
    event.expected = last;
    return event;
}

static struct append_event expecting_none(struct append_event event)
{
    event.expect = APPEND_NONE;
    return event;
}

static void numbers_each_stream_from_0_and_positions_from_1(void **state)
{
    struct fixture *f = *state;
    struct append_event events[] = {
        event_of("bank.Account", "A", "1"), event_of("bank.Account", "B", "2"),
        event_of("bank.Account", "A", "3"), event_of("bank.Card", "A", "4"),
        event_of("bank.Account", "a", "5"), event_of("bank.Account", "A ", "6"),
    };
    const int64_t sequences[] = {0, 0, 1, 0, 0, 0};
    struct append_result results[6];
    size_t bad;

    check_ok(f, append(f, events, 6, results, &bad));
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(results[i].sequence, sequences[i]);
        assert_int_equal(results[i].position, i + 1);
        assert_false(results[i].repeated);
    }
    assert_int_equal(append_one(f, events[2]).sequence, 2);
    assert_int_equal(append_one(f, events[3]).sequence, 1);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 8);
}

static void keeps_streams_apart_whose_names_join_to_the_same(void **state)
{
    struct fixture *f = *state;
    struct append_event events[] = {event_of("a", "bc", "1"),
                                    event_of("ab", "c", "2"),
                                    event_of("abc", "bc", "3")};
    struct append_result results[3];
    size_t bad;

    check_ok(f, append(f, events, 3, results, &bad));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(results[i].sequence, 0);
}

static void stores_every_column(void **state)
{
    struct fixture *f = *state;
    struct append_event event = with_id(
        event_of("bank.Account", "caf\xc3\xa9-42", "{ \"a\" :1}"),
        "0190F6A0-ABCD-7000-8000-000000000001");

    event.metadata = text_of("{ }");
    event.revision = 7;
    append_one(f, event);
    assert_int_equal(
        integer_of(f, "SELECT count(*) FROM EVENT_STORE WHERE"
                      " id = '0190f6a0-abcd-7000-8000-000000000001'"
                      " AND aggregate_type = 'bank.Account'"
                      " AND aggregate_id = 'caf\xc3\xa9-42'"
                      " AND sequence_no = 0 AND event_type = 'happened'"
                      " AND event_revision = 7"
                      " AND payload = '{ \"a\" :1}' AND metadata = '{ }'"
                      " AND occurred_at = '2024-02-29T10:00:00.000001Z'"
                      " AND partition_key = 6 AND global_position = 1"),
        1);
}

static void leaves_metadata_null_when_none_is_given(void **state)
{
    struct fixture *f = *state;

    append_one(f, event_of("t", "i", "null"));
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"
                                   " WHERE metadata IS NULL"),
                     1);
}

static void partitions_by_the_aggregate_id(void **state)
{
    static const char *const ids[] = {"caf\xc3\xa9-42", "order-1",
                                      "\xc3\x9cn\xc3\xaf\143ode",
                                      "\xe6\x97\xa5\xe6\x9c\xac-7"};
    const int64_t partitions[] = {6, 1, 3, 5};
    struct fixture *f = *state;

    for (size_t i = 0; i < 4; i++) {
        append_one(f, event_of("t", ids[i], "1"));
        assert_int_equal(integer_of(f,
                                    "SELECT partition_key FROM EVENT_STORE"
                                    " ORDER BY global_position DESC LIMIT 1"),
                         partitions[i]);
    }
}

static void makes_rising_version_7_ids(void **state)
{
    struct fixture *f = *state;
    struct append_event events[] = {event_of("t", "i", "1"),
                                    event_of("t", "i", "2")};
    struct append_result results[2];
    size_t bad;

    check_ok(f, append(f, events, 2, results, &bad));
    assert_int_equal(results[0].id.bytes[6] >> 4, 7);
    assert_true(memcmp(results[0].id.bytes, results[1].id.bytes, 16) < 0);
}

static void judges_the_expected_sequence_event_by_event(void **state)
{
    struct fixture *f = *state;
    struct append_event event = event_of("t", "i", "1");
    struct append_event good[] = {expecting_none(event), expecting(event, 0),
                                  expecting(event, 1), event};
    struct append_event wrong[] = {event, expecting(event, 3)};
    struct append_result results[4];
    size_t bad;

    check_ok(f, append(f, good, 4, results, &bad));
    assert_int_equal(results[3].sequence, 3);
    assert_int_equal(append(f, wrong, 2, results, &bad), STATUS_REFUSED);
    assert_int_equal(bad, 1);
    expect_message(f, "stream t \"i\": expected sequence number 3, but its "
                      "last event has sequence number 4");
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 4);
}

static void refuses_an_expectation_of_an_empty_or_full_stream(void **state)
{
    struct fixture *f = *state;
    struct append_event event = event_of("t", "i", "1");
    struct append_event ahead = expecting(event, 0);
    struct append_event fresh = expecting_none(event);
    struct append_result result;
    size_t bad;

    assert_int_equal(append(f, &ahead, 1, &result, &bad), STATUS_REFUSED);
    expect_message(f, "expected sequence number 0, but it has no event yet");
    append_one(f, event);
    assert_int_equal(append(f, &fresh, 1, &result, &bad), STATUS_REFUSED);
    expect_message(f, "expected no event, but its last event has sequence "
                      "number 0");
}

static void returns_the_first_result_when_an_id_is_repeated(void **state)
{
    struct fixture *f = *state;
    struct append_event event = with_id(event_of("t", "i", "{\"a\":1}"), ID_1);
    struct append_result first;
    struct append_result again;

    event.metadata = text_of("{}");
    first = append_one(f, expecting_none(event));
    append_one(f, event_of("t", "i", "2"));
    again = append_one(f, expecting_none(event));
    assert_true(again.repeated);
    assert_true(uuid_equal(&again.id, &first.id));
    assert_int_equal(again.sequence, first.sequence);
    assert_int_equal(again.position, first.position);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 2);
    assert_int_equal(
        integer_of(f, "SELECT val FROM EVENT_STORE_GLOBAL_POSITION"), 2);
}

static void
writes_the_new_events_of_a_call_that_is_partly_repeated(void **state)
{
    struct fixture *f = *state;
    struct append_event events[] = {
        event_of("t", "i", "0"),
        with_id(event_of("t", "i", "1"), ID_1),
        event_of("t", "j", "2"),
    };
    struct append_result results[3];
    size_t bad;

    append_one(f, events[1]);
    check_ok(f, append(f, events, 3, results, &bad));
    assert_false(results[0].repeated);
    assert_true(results[1].repeated);
    assert_false(results[2].repeated);
    assert_int_equal(results[0].sequence, 1);
    assert_int_equal(results[0].position, 2);
    assert_int_equal(results[1].position, 1);
    assert_int_equal(results[2].position, 3);
}

static void takes_an_id_twice_in_one_call_as_a_repeat(void **state)
{
    struct fixture *f = *state;
    struct append_event event = with_id(event_of("t", "i", "1"), ID_1);
    struct append_event events[] = {event, event_of("t", "i", "2"), event};
    struct append_result results[3];
    size_t bad;

    check_ok(f, append(f, events, 3, results, &bad));
    assert_true(results[2].repeated);
    assert_int_equal(results[2].position, results[0].position);
    assert_int_equal(results[2].sequence, 0);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 2);

    /* the time of the call is what the first one was given */
    events[0] = with_id(event_of("t", "i", "2"), ID_2);
    events[2] = events[0];
    events[2].has_occurred_at = true;
    events[2].occurred_at = NOW;
    check_ok(f, append(f, events, 3, results, &bad));
    assert_true(results[2].repeated);
    events[0] = event;

    events[1] = with_id(event_of("t", "i", "2"), ID_2);
    events[2] = with_id(event_of("t", "i", "3"), ID_2);
    assert_int_equal(append(f, events, 3, results, &bad), STATUS_REFUSED);
    assert_int_equal(bad, 2);
    expect_message(f,
                   "event id " ID_2
                   " is used earlier in the same batch with another payload");
}

static void refuses_an_id_with_other_content(void **state)
{
    struct fixture *f = *state;
    struct append_event event = with_id(event_of("t", "i", "{\"a\":1}"), ID_1);
    struct append_event other[7];
    static const char *const parts[] = {
        "aggregate_type", "aggregate_id", "type",       "revision",
        "payload",        "metadata",     "occurred_at"};
    struct append_result result;
    size_t bad;

    for (size_t i = 0; i < 7; i++)
        other[i] = event;
    other[0].aggregate_type = text_of("T");
    other[1].aggregate_id = text_of("I");
    other[2].type = text_of("Happened");
    other[3].revision = 1;
    other[4].payload = text_of("{\"a\": 1}");
    other[5].metadata = text_of("{}");
    other[6].has_occurred_at = true;
    other[6].occurred_at = NOW + 1;
    append_one(f, event);
    for (size_t i = 0; i < 7; i++) {
        char message[200];

        assert_int_equal(append(f, &other[i], 1, &result, &bad),
                         STATUS_REFUSED);
        assert_int_equal(bad, 0);
        snprintf(message, sizeof(message),
                 "event id " ID_1 " is stored at position 1 with another %s;",
                 parts[i]);
        expect_message(f, message);
    }
    other[6].occurred_at = NOW;
    assert_true(append_one(f, other[6]).repeated);
}

static void puts_an_aggregate_into_its_own_table(void **state)
{
    struct fixture *f = *state;
    struct append_event events[] = {
        event_of(OWN_TYPE, "A", "1"),
        event_of("bank.Account", "A", "2"),
        event_of(OWN_TYPE, "A", "3"),
    };
    struct append_result results[3];
    size_t bad;

    check_ok(f, append(f, events, 3, results, &bad));
    assert_int_equal(results[2].sequence, 1);
    assert_int_equal(results[2].position, 3);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM " OWN_TABLE), 2);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 1);
}

static void knows_an_id_across_the_tables(void **state)
{
    struct fixture *f = *state;
    struct append_event event = with_id(event_of(OWN_TYPE, "A", "1"), ID_1);
    struct append_event other = with_id(event_of("t", "A", "1"), ID_1);
    struct append_result result;
    size_t bad;

    append_one(f, event);
    assert_int_equal(append(f, &other, 1, &result, &bad), STATUS_REFUSED);
    assert_true(append_one(f, event).repeated);
}

static void gives_positions_back_when_the_transaction_rolls_back(void **state)
{
    struct fixture *f = *state;
    struct append_options options = {
        .ids = &f->ids, .now_us = NOW, .payload_limit = PAYLOAD_LIMIT};
    struct append_event event = event_of("t", "i", "1");
    struct append_result result;
    size_t bad;

    check_ok(f, db_begin(f->db, &f->diag));
    check_ok(f, append_events(f->store, f->db, &options, &event, 1, &result,
                              &bad, &f->diag));
    assert_int_equal(result.position, 1);
    db_rollback(f->db);
    assert_int_equal(append_one(f, event).position, 1);
}

/* A stream that a check cannot see takes the place of another writer. */
static void calls_a_lost_race_a_conflict(void **state)
{
    struct fixture *f = *state;
    struct append_event event = event_of("t", "i", "1");
    struct append_result result;
    size_t bad;

    run_sql(f, "CREATE TRIGGER race BEFORE INSERT ON EVENT_STORE"
               " WHEN new.event_type = 'happened' BEGIN"
               " INSERT INTO EVENT_STORE VALUES ('other', new.aggregate_id,"
               " new.aggregate_type, new.sequence_no, 'x', 0, '1', NULL,"
               " new.occurred_at, 0, 1000); END");
    assert_int_equal(append(f, &event, 1, &result, &bad), STATUS_CONFLICT);
    assert_int_equal(bad, 1);
    expect_message(f, "another writer appended to the same stream");
}

static void runs_as_many_statements_for_one_event_as_for_many(void **state)
{
    enum { COUNT = 400 };
    struct fixture *f = *state;
    static struct append_event events[COUNT];
    static struct append_result results[COUNT];
    static char ids[COUNT][16];
    int64_t before;
    int64_t reads;
    size_t bad;

    for (int i = 0; i < COUNT; i++) {
        snprintf(ids[i], sizeof(ids[i]), "id-%d", i);
        events[i] = event_of("t", ids[i], "1");
    }
    append_one(f, events[0]);
    before = db_round_trips(f->db);
    check_ok(f, append(f, events, 1, results, &bad));
    reads = db_round_trips(f->db) - before - 1;
    before = db_round_trips(f->db);
    check_ok(f, append(f, events, COUNT, results, &bad));
    /* here a bulk insert counts once per row */
    assert_int_equal(db_round_trips(f->db) - before - COUNT, reads);
    assert_int_equal(results[0].sequence, 2);
    assert_int_equal(results[COUNT - 1].position, COUNT + 2);
}

static void expect_invalid(struct fixture *f, struct append_event event,
                           const char *message)
{
    struct append_event events[] = {event_of("t", "i", "1"), event};
    struct append_result results[2];
    size_t bad;

    assert_int_equal(append(f, events, 2, results, &bad), STATUS_INVALID);
    assert_int_equal(bad, 1);
    expect_message(f, message);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 0);
}

static void refuses_names_that_break_a_rule(void **state)
{
    struct fixture *f = *state;
    struct append_event event = event_of("t", "i", "1");
    char long_id[2 * 256 + 1];

    for (size_t i = 0; i < 256; i++)
        memcpy(long_id + 2 * i, "\xc3\xa9", 2);
    long_id[512] = '\0';

    event.aggregate_id = text_of("");
    expect_invalid(f, event, "aggregate_id is empty");
    event.aggregate_id = (struct text){"a\0b", 3};
    expect_invalid(f, event, "aggregate_id contains a NUL character");
    event.aggregate_id = text_of("\xc3");
    expect_invalid(f, event, "aggregate_id is not valid UTF-8");
    event.aggregate_id = text_of(long_id);
    expect_invalid(f, event,
                   "aggregate_id has 256 characters; at most 255 are allowed");
    event.aggregate_id = text_of("i");
    event.type = text_of(long_id);
    expect_invalid(f, event, "type has 256 characters");
    event.type = text_of("x");
    event.aggregate_type = TEXT_NONE;
    expect_invalid(f, event, "aggregate_type is empty");

    event = event_of("t", long_id, "1");
    event.aggregate_id.len -= 2;
    assert_int_equal(append_one(f, event).sequence, 0);
}

static void refuses_documents_that_break_a_rule(void **state)
{
    struct fixture *f = *state;
    struct append_event event = event_of("t", "i", "{\"a\":}");
    char *large = malloc(PAYLOAD_LIMIT + 2);

    assert_non_null(large);
    memset(large, '1', PAYLOAD_LIMIT + 1);
    large[PAYLOAD_LIMIT + 1] = '\0';

    expect_invalid(f, event, "payload is not valid JSON");
    expect_invalid(f, event, "5");
    event.payload = text_of("");
    expect_invalid(f, event, "payload is not valid JSON");
    event.payload = text_of(large);
    expect_invalid(f, event,
                   "payload has 1001 bytes; limits.payload allows 1000");
    event.payload = text_of("1");
    event.metadata = text_of("[]");
    expect_invalid(f, event, "metadata is not a JSON object");
    event.metadata = text_of("{");
    expect_invalid(f, event, "metadata is not valid JSON");
    event.metadata = TEXT_NONE;
    event.revision = -1;
    expect_invalid(f, event, "revision is -1");
    event.revision = 0;
    expect_invalid(f, expecting(event, -1), "expected is -1");

    event.payload.data = large;
    event.payload.len = PAYLOAD_LIMIT;
    append_one(f, event);
    free(large);
}

static void does_nothing_for_no_events(void **state)
{
    struct fixture *f = *state;
    size_t bad = 7;

    check_ok(f, append(f, NULL, 0, NULL, &bad));
    assert_int_equal(bad, 0);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_each_stream_from_0_and_positions_from_1),
        TEST(keeps_streams_apart_whose_names_join_to_the_same),
        TEST(stores_every_column),
        TEST(leaves_metadata_null_when_none_is_given),
        TEST(partitions_by_the_aggregate_id),
        TEST(makes_rising_version_7_ids),
        TEST(judges_the_expected_sequence_event_by_event),
        TEST(refuses_an_expectation_of_an_empty_or_full_stream),
        TEST(returns_the_first_result_when_an_id_is_repeated),
        TEST(writes_the_new_events_of_a_call_that_is_partly_repeated),
        TEST(takes_an_id_twice_in_one_call_as_a_repeat),
        TEST(refuses_an_id_with_other_content),
        TEST(puts_an_aggregate_into_its_own_table),
        TEST(knows_an_id_across_the_tables),
        TEST(gives_positions_back_when_the_transaction_rolls_back),
        TEST(calls_a_lost_race_a_conflict),
        TEST(runs_as_many_statements_for_one_event_as_for_many),
        TEST(refuses_names_that_break_a_rule),
        TEST(refuses_documents_that_break_a_rule),
        TEST(does_nothing_for_no_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
