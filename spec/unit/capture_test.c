/*
 * Capture topic: what a page tells of the topic's start, where messages without
 * a key go, and that both topics number by themselves.
 */
#include "topic_fixture.h"

#include "topic/capture.h"
#include "topic/event_page.h"

struct world {
    struct fixture *f;
    struct capture *capture;
};

static int world_open(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    void *fixture = NULL;

    fixture_open(&fixture);
    w->f = fixture;
    check_ok(w->f,
             capture_open(db_dialect(w->f->db), &w->f->names, w->f->catalog,
                          PARTITIONS, &w->capture, &w->f->diag));
    *state = w;
    return 0;
}

static int world_close(void **state)
{
    struct world *w = *state;
    void *fixture = w->f;

    capture_close(w->capture);
    fixture_close(&fixture);
    free(w);
    return 0;
}

static struct append_event emitted(const char *key)
{
    return (struct append_event){
        .key = key != NULL ? text_of(key) : TEXT_NONE,
        .type = text_of("happened"),
        .payload = text_of("{}"),
    };
}

static struct append_result emit(struct world *w, struct append_event event)
{
    struct fixture *f = w->f;
    struct append_options options = {
        .ids = &f->ids, .now_us = NOW, .payload_limit = PAYLOAD_LIMIT};
    struct append_result result;
    size_t bad;

    check_ok(f, db_begin(f->db, &f->diag));
    check_ok(f, capture_append(w->capture, f->db, &options, &event, 1, &result,
                               &bad, &f->diag));
    check_ok(f, db_commit(f->db, NULL, &f->diag));
    return result;
}

static void read_page(struct world *w, int64_t after, struct event_page *page)
{
    const struct event_filter all = {.ntypes = 0};
    const struct event_range range = {
        .after = after, .upto = 3, .limit = 10, .byte_limit = 1 << 20};

    check_ok(w->f, event_page_read(capture_topic(w->capture), w->f->db, &all,
                                   &range, page, &w->f->diag));
}

/* Whoever reads at 0 while messages up to 2 are deleted must hear of it from
 * the page itself: the mark it has may be older. */
static void a_page_tells_the_start_it_was_read_under(void **state)
{
    struct world *w = *state;
    struct event_page page = {.arena = ARENA_EMPTY};

    for (int i = 0; i < 3; i++)
        emit(w, emitted("a"));
    read_page(w, 0, &page);
    assert_int_equal(page.count, 3);
    assert_int_equal(page.start, 0);
    run_sql(w->f, "UPDATE HIGH_WATER_MARK_STORE SET topic_start = 2"
                  " WHERE topic_name = 'event-capture';"
                  "DELETE FROM EVENT_CAPTURE_RECORDS"
                  " WHERE global_position <= 2");
    read_page(w, 0, &page);
    assert_int_equal(page.count, 1);
    assert_int_equal(page.start, 2);
    event_page_free(&page);
}

static void an_empty_page_tells_it_too(void **state)
{
    struct world *w = *state;
    struct event_page page = {.arena = ARENA_EMPTY};

    for (int i = 0; i < 3; i++)
        emit(w, emitted("a"));
    run_sql(w->f, "UPDATE HIGH_WATER_MARK_STORE SET topic_start = 3"
                  " WHERE topic_name = 'event-capture';"
                  "DELETE FROM EVENT_CAPTURE_RECORDS");
    read_page(w, 0, &page);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.start, 3);
    event_page_free(&page);
}

static void a_message_shows_what_it_has_and_no_aggregate(void **state)
{
    struct world *w = *state;
    struct event_page page = {.arena = ARENA_EMPTY};

    emit(w, emitted("caf\xc3\xa9-42"));
    emit(w, emitted(NULL));
    read_page(w, 0, &page);
    assert_int_equal(page.count, 2);
    assert_text(page.messages[0].key, "caf\xc3\xa9-42");
    assert_int_equal(page.messages[0].partition, 6);
    assert_null(page.messages[0].aggregate_id.data);
    assert_int_equal(page.messages[0].sequence, MESSAGE_NO_SEQUENCE);
    assert_null(page.messages[1].key.data);
    event_page_free(&page);
}

static void each_topic_numbers_by_itself(void **state)
{
    struct world *w = *state;

    append_one(w->f, event_of("t", "a", "{}"));
    append_one(w->f, event_of("t", "a", "{}"));
    assert_int_equal(emit(w, emitted("a")).position, 1);
    assert_int_equal(append_one(w->f, event_of("t", "a", "{}")).position, 3);
    assert_int_equal(emit(w, emitted("a")).position, 2);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page_tells_the_start_it_was_read_under),
        TEST(an_empty_page_tells_it_too),
        TEST(a_message_shows_what_it_has_and_no_aggregate),
        TEST(each_topic_numbers_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
