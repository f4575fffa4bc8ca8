/*
 * Outbox: what is staged stands there once, under its route and event id, in
 * the order of staging, and goes out again only after it was published.
 */
#include "topic_fixture.h"

#include "outbox/outbox.h"

#define ID_1 "0190f6a0-0000-7000-8000-000000000001"
#define ID_2 "0190f6a0-0000-7000-8000-000000000002"

static struct outgoing message_of(const char *route, const char *payload)
{
    return (struct outgoing){
        .route = text_of(route),
        .type = TEXT_LITERAL("mail.Send"),
        .payload = text_of(payload),
        .occurred_at = NOW,
    };
}

static struct outgoing under(struct outgoing message, const char *id)
{
    assert_true(uuid_parse(text_of(id), &message.event_id));
    message.own_id = true;
    return message;
}

/* Stages in a transaction of its own that is committed on success. */
static enum status stage(struct fixture *f, const struct outgoing *messages,
                         size_t count, size_t *bad)
{
    const struct outbox outbox = {f->db, f->catalog, &f->names, &f->ids};
    struct arena arena = ARENA_EMPTY;
    enum status status;

    check_ok(f, db_begin(f->db, &f->diag));
    status = outbox_stage(&outbox, messages, count, NOW, &arena, bad, &f->diag);
    if (status == STATUS_OK)
        check_ok(f, db_commit(f->db, NULL, &f->diag));
    else
        db_rollback(f->db);
    arena_free(&arena);
    return status;
}

static void stages_messages_in_their_order(void **state)
{
    struct fixture *f = *state;
    struct uuid correlation;
    struct outgoing messages[2] = {
        under(message_of("mail", "{ \"b\": 1.0 }"), ID_2),
        under(message_of("mail", "{}"), ID_1)};
    size_t bad;

    assert_true(uuid_parse(TEXT_LITERAL(ID_1), &correlation));
    messages[0].correlation_id = &correlation;
    messages[0].ordering_key = TEXT_LITERAL("O-1");
    check_ok(f, stage(f, messages, 2, &bad));
    assert_int_equal(integer_of(f, "SELECT count(*) FROM OUTBOX WHERE status ="
                                   " 'pending' AND attempts = 0 AND"
                                   " available_at = created_at AND"
                                   " published_at IS NULL"),
                     2);
    assert_int_equal(
        integer_of(f, "SELECT count(*) FROM OUTBOX AS a, OUTBOX AS b WHERE"
                      " a.id < b.id AND a.event_id = '" ID_2 "' AND"
                      " a.payload = '{ \"b\": 1.0 }' AND a.ordering_key ="
                      " 'O-1' AND a.correlation_id = '" ID_1 "' AND"
                      " b.ordering_key IS NULL AND b.correlation_id IS NULL"),
        1);
}

static void keeps_a_message_once(void **state)
{
    struct fixture *f = *state;
    const struct outgoing messages[3] = {under(message_of("mail", "1"), ID_1),
                                         under(message_of("mail", "1"), ID_1),
                                         under(message_of("post", "2"), ID_1)};
    size_t bad;

    check_ok(f, stage(f, messages, 3, &bad));
    check_ok(f, stage(f, messages, 3, &bad));
    assert_int_equal(integer_of(f, "SELECT count(*) FROM OUTBOX"), 2);
}

static void refuses_an_id_with_other_content(void **state)
{
    struct fixture *f = *state;
    struct outgoing messages[3] = {message_of("post", "0"),
                                   under(message_of("mail", "1"), ID_1),
                                   under(message_of("mail", "2"), ID_1)};
    size_t bad = 9;

    assert_int_equal(stage(f, messages, 3, &bad), STATUS_REFUSED);
    assert_int_equal(bad, 2);
    expect_message(f, ID_1 " for 'mail' is in the outbox with another payload");
    check_ok(f, stage(f, messages, 2, &bad));
    messages[1].ordering_key = TEXT_LITERAL("K");
    assert_int_equal(stage(f, messages, 2, &bad), STATUS_REFUSED);
    assert_int_equal(bad, 1);
    expect_message(f, "with another ordering key");
    assert_int_equal(integer_of(f, "SELECT count(*) FROM OUTBOX"), 2);
}

static void counts_characters_of_a_key(void **state)
{
    struct fixture *f = *state;
    struct outgoing message = under(message_of("mail", "1"), ID_1);
    char key[2 * 256 + 1];
    size_t bad;

    for (size_t i = 0; i < sizeof(key) - 1; i += 2)
        memcpy(key + i, "\xc3\xa9", 2);
    message.ordering_key = (struct text){key, 2 * 256};
    assert_int_equal(stage(f, &message, 1, &bad), STATUS_LIMIT);
    expect_message(f, "the ordering key has 256 characters, at most 255");
    message.ordering_key.len = 2 * 255;
    check_ok(f, stage(f, &message, 1, &bad));
    message.ordering_key.len = 0;
    assert_int_equal(stage(f, &message, 1, &bad), STATUS_LIMIT);
    expect_message(f, "the ordering key is empty");
}

static void sends_again_what_was_published_or_parked(void **state)
{
    struct fixture *f = *state;
    const struct outgoing messages[2] = {under(message_of("mail", "1"), ID_1),
                                         under(message_of("mail", "2"), ID_2)};
    struct outgoing again[3] = {under(message_of("mail", ""), ID_1),
                                under(message_of("mail", ""), ID_2),
                                under(message_of("post", ""), ID_1)};
    size_t bad;

    for (size_t i = 0; i < 3; i++)
        again[i].again = true;

    check_ok(f, stage(f, messages, 2, &bad));
    run_sql(f, "UPDATE OUTBOX SET status = 'published', attempts = 3,"
               " published_at = '2024-02-29T10:00:00.000001Z' WHERE"
               " event_id = '" ID_1 "'; UPDATE OUTBOX SET status = 'parked',"
               " attempts = 4 WHERE event_id = '" ID_2 "'");
    assert_int_equal(stage(f, again, 3, &bad), STATUS_REFUSED);
    assert_int_equal(bad, 2);
    expect_message(f, "it is no longer in the outbox");
    check_ok(f, stage(f, again, 2, &bad));
    assert_int_equal(integer_of(f, "SELECT count(*) FROM OUTBOX WHERE status ="
                                   " 'pending' AND attempts = 0 AND"
                                   " published_at IS NULL AND available_at ="
                                   " created_at"),
                     2);
}

static void stages_anew_what_is_to_go_again_and_is_gone(void **state)
{
    struct fixture *f = *state;
    struct outgoing again[2] = {under(message_of("mail", "1"), ID_1),
                                under(message_of("mail", "2"), ID_2)};
    size_t bad;

    check_ok(f, stage(f, &again[0], 1, &bad));
    again[0].again = again[1].again = true;
    check_ok(f, stage(f, again, 2, &bad));
    check_ok(f, stage(f, again, 2, &bad));
    assert_int_equal(integer_of(f, "SELECT count(*) FROM OUTBOX"), 2);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM OUTBOX WHERE event_id "
                                   "= '" ID_2 "' AND status = 'pending'"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define OUTBOX_TEST(name)                                                      \
    cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
        OUTBOX_TEST(stages_messages_in_their_order),
        OUTBOX_TEST(keeps_a_message_once),
        OUTBOX_TEST(refuses_an_id_with_other_content),
        OUTBOX_TEST(counts_characters_of_a_key),
        OUTBOX_TEST(sends_again_what_was_published_or_parked),
        OUTBOX_TEST(stages_anew_what_is_to_go_again_and_is_gone),
#undef OUTBOX_TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
