/*
 * Event page: position order across the tables, filters, limits, how far a
 * page says it got, and that no plan sorts.
 */
#include "topic_fixture.h"

#include "topic/event_page.h"
#include "topic/event_store.h"

static const struct event_filter everything;

static struct event_range range_of(int64_t after, int64_t upto, size_t limit)
{
    return (struct event_range){
        .after = after, .upto = upto, .limit = limit, .byte_limit = SIZE_MAX};
}

static void read_page(struct fixture *f, const struct event_filter *filter,
                      struct event_range range, struct event_page *page)
{
    check_ok(f, event_page_read(event_store_topic(f->store), f->db, filter,
                                &range, page, &f->diag));
}

/* `positions` ends with 0. */
static void expect_positions(const struct event_page *page,
                             const int64_t *positions)
{
    size_t count = 0;

    while (positions[count] != 0)
        count++;
    assert_int_equal(page->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(page->messages[i].position, positions[i]);
}

/* Positions: 1 bank A, 2 shop A, 3 bank B, 4 bank A, 5 shop B, 6 bank C. */
static void append_six(struct fixture *f)
{
    struct append_event events[] = {
        event_of("bank", "A", "1"),   event_of(OWN_TYPE, "A", "2"),
        event_of("bank", "B", "3"),   event_of("bank", "A", "4"),
        event_of(OWN_TYPE, "B", "5"), event_of("bank", "C", "6"),
    };
    struct append_result results[6];
    size_t bad;

    events[3].type = text_of("changed");
    events[4].type = text_of("changed");
    check_ok(f, append(f, events, 6, results, &bad));
}

static void reads_a_message_as_it_was_written(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};
    struct append_event event = with_id(
        event_of("bank", "caf\xc3\xa9-42", "{ \"a\":\"\\u0000\" } "),
        "0190f6a0-0000-7000-8000-000000000001");
    const struct message *message;

    event.metadata = text_of("{\"by\": 1}");
    event.revision = 3;
    append_one(f, event);
    append_one(f, event_of("bank", "caf\xc3\xa9-42", "2"));
    read_page(f, &everything, range_of(0, 2, 10), &page);
    assert_int_equal(page.count, 2);
    message = &page.messages[0];
    assert_int_equal(message->position, 1);
    assert_true(uuid_equal(&message->id, &event.id));
    assert_text(message->key, "caf\xc3\xa9-42");
    assert_text(message->aggregate_id, "caf\xc3\xa9-42");
    assert_text(message->aggregate_type, "bank");
    assert_text(message->type, "happened");
    assert_text(message->payload, "{ \"a\":\"\\u0000\" } ");
    assert_text(message->metadata, "{\"by\": 1}");
    assert_int_equal(message->revision, 3);
    assert_int_equal(message->partition, 6);
    assert_int_equal(message->sequence, 0);
    assert_int_equal(message->occurred_at, NOW);
    assert_null(page.messages[1].metadata.data);
    assert_int_equal(page.messages[1].sequence, 1);
    event_page_free(&page);
}

static void reads_across_the_tables_in_position_order(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};

    append_six(f);
    read_page(f, &everything, range_of(0, 6, 10), &page);
    expect_positions(&page, (int64_t[]){1, 2, 3, 4, 5, 6, 0});
    assert_int_equal(page.through, 6);
    event_page_free(&page);
}

static void stops_at_the_mark(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};

    append_six(f);
    read_page(f, &everything, range_of(2, 4, 10), &page);
    expect_positions(&page, (int64_t[]){3, 4, 0});
    assert_int_equal(page.through, 4);
    read_page(f, &everything, range_of(4, 4, 10), &page);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.through, 4);
    event_page_free(&page);
}

static void goes_through_the_last_message_of_a_full_page(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};

    append_six(f);
    read_page(f, &everything, range_of(0, 6, 4), &page);
    expect_positions(&page, (int64_t[]){1, 2, 3, 4, 0});
    assert_int_equal(page.through, 4);
    read_page(f, &everything, range_of(page.through, 6, 4), &page);
    expect_positions(&page, (int64_t[]){5, 6, 0});
    assert_int_equal(page.through, 6);
    event_page_free(&page);
}

static void goes_through_the_mark_when_the_rest_is_unwanted(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};
    struct text types[] = {TEXT_LITERAL("changed")};
    struct event_filter filter = {.types = types, .ntypes = 1};

    append_six(f);
    read_page(f, &filter, range_of(0, 6, 10), &page);
    expect_positions(&page, (int64_t[]){4, 5, 0});
    assert_int_equal(page.through, 6);
    event_page_free(&page);
}

static void bounds_the_page_by_payload_bytes(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};
    struct event_range range = range_of(0, 3, 10);

    append_one(f, event_of("bank", "A", "\"12345678\""));
    append_one(f, event_of("bank", "A", "\"12345678\""));
    append_one(f, event_of("bank", "A", "1"));
    range.byte_limit = 20;
    read_page(f, &everything, range, &page);
    expect_positions(&page, (int64_t[]){1, 2, 0});
    assert_int_equal(page.through, 2);
    range.byte_limit = 19;
    read_page(f, &everything, range, &page);
    expect_positions(&page, (int64_t[]){1, 0});
    assert_int_equal(page.through, 1);
    range.byte_limit = 1;
    read_page(f, &everything, range, &page);
    expect_positions(&page, (int64_t[]){1, 0});
    event_page_free(&page);
}

static void filters_by_aggregate_type_id_and_partition(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};
    struct text own[] = {TEXT_LITERAL(OWN_TYPE)};
    struct text shared[] = {TEXT_LITERAL("bank")};
    struct text both[] = {TEXT_LITERAL("bank"), TEXT_LITERAL(OWN_TYPE)};
    int64_t partitions[1];
    struct event_filter filter = {.aggregates = own, .naggregates = 1};

    append_six(f);
    read_page(f, &filter, range_of(0, 6, 10), &page);
    expect_positions(&page, (int64_t[]){2, 5, 0});
    filter.aggregates = shared;
    read_page(f, &filter, range_of(0, 6, 10), &page);
    expect_positions(&page, (int64_t[]){1, 3, 4, 6, 0});
    filter.aggregates = both;
    filter.naggregates = 2;
    filter.key = text_of("B");
    read_page(f, &filter, range_of(0, 6, 10), &page);
    expect_positions(&page, (int64_t[]){3, 5, 0});
    assert_int_equal(page.through, 6);
    partitions[0] = page.messages[0].partition;
    filter = (struct event_filter){.partitions = partitions, .npartitions = 1};
    read_page(f, &filter, range_of(0, 6, 10), &page);
    expect_positions(&page, (int64_t[]){3, 5, 0});
    event_page_free(&page);
}

/* A type is compared byte by byte. */
static void tells_types_apart_by_every_byte(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};
    struct text types[] = {TEXT_LITERAL("Changed"), TEXT_LITERAL("changed ")};
    struct event_filter filter = {.types = types, .ntypes = 2};

    append_six(f);
    read_page(f, &filter, range_of(0, 6, 10), &page);
    assert_int_equal(page.count, 0);
    event_page_free(&page);
}

static void walks_a_long_stretch_of_unwanted_events_in_steps(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.count = 0};
    struct text types[] = {TEXT_LITERAL("wanted")};
    struct event_filter filter = {.types = types, .ntypes = 1};
    struct append_event event = event_of("bank", "A", "1");

    run_sql(f, "UPDATE EVENT_STORE_GLOBAL_POSITION SET val = 30000");
    event.type = types[0];
    append_one(f, event);
    read_page(f, &filter, range_of(0, 30001, 10), &page);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.through, 20000);
    read_page(f, &filter, range_of(page.through, 30001, 10), &page);
    expect_positions(&page, (int64_t[]){30001, 0});
    assert_int_equal(page.through, 30001);
    read_page(f, &everything, range_of(0, 30001, 10), &page);
    expect_positions(&page, (int64_t[]){30001, 0});
    event_page_free(&page);
}

static void counts_what_matches_up_to_a_limit(void **state)
{
    struct fixture *f = *state;
    struct text types[] = {TEXT_LITERAL("changed")};
    struct event_filter filter = {.types = types, .ntypes = 1};
    int64_t count;

    append_six(f);
    check_ok(f, event_page_count(event_store_topic(f->store), f->db,
                                 &everything, 0, 6, 100, &count, &f->diag));
    assert_int_equal(count, 6);
    check_ok(f, event_page_count(event_store_topic(f->store), f->db,
                                 &everything, 1, 5, 100, &count, &f->diag));
    assert_int_equal(count, 4);
    check_ok(f, event_page_count(event_store_topic(f->store), f->db,
                                 &everything, 0, 6, 5, &count, &f->diag));
    assert_int_equal(count, 5);
    check_ok(f, event_page_count(event_store_topic(f->store), f->db, &filter, 0,
                                 6, 100, &count, &f->diag));
    assert_int_equal(count, 2);
    filter.key = text_of("B");
    check_ok(f, event_page_count(event_store_topic(f->store), f->db, &filter, 0,
                                 6, 100, &count, &f->diag));
    assert_int_equal(count, 1);
}

/* The plan of a page over the shared and the own table. */
static void explain(struct fixture *f, enum sql_statement statement,
                    size_t nparams, struct buffer *plan)
{
    struct text text = TEXT_LITERAL("[\"x\"]");
    struct db_value params[] = {
        db_integer(0),       db_integer(1000),    db_integer(10),
        db_text_value(text), db_text_value(text), db_text_value(text),
        db_text_value(text), db_integer(3),
    };
    struct text raw = catalog_raw(db_dialect(f->db), statement);
    struct buffer sql = BUFFER_EMPTY;
    struct catalog_name own[TABLE_COUNT + 1];
    struct db_sql prepared;
    struct db_rows *rows;
    bool more = true;

    memcpy(own, f->names.fill, sizeof(own));
    own[TABLE_EVENT_STORE].value = OWN_TABLE;
    buffer_append_string(&sql, "EXPLAIN QUERY PLAN ");
    check_ok(f, catalog_fill(raw, f->names.fill, &sql, &f->diag));
    buffer_append_string(&sql, " UNION ALL ");
    check_ok(f, catalog_fill(raw, own, &sql, &f->diag));
    buffer_append_string(&sql, " ORDER BY global_position LIMIT ?3");
    prepared = db_sql_make(buffer_text(&sql), DB_HOST);
    check_ok(f, db_query(f->db, &prepared, params, nparams, &rows, &f->diag));
    while (more) {
        check_ok(f, db_next(rows, &more, &f->diag));
        if (more) {
            buffer_append_text(plan, db_get_text(rows, 3));
            buffer_append_char(plan, '\n');
        }
    }
    db_rows_close(rows);
    buffer_free(&sql);
}

static void never_sorts(void **state)
{
    struct fixture *f = *state;
    struct buffer plan = BUFFER_EMPTY;

    explain(f, SQL_EVENT_PAGE, 6, &plan);
    assert_null(strstr(buffer_text(&plan).data, "TEMP B-TREE"));
    assert_non_null(strstr(buffer_text(&plan).data,
                           "SEARCH EVENT_STORE USING INTEGER "
                           "PRIMARY KEY (rowid>? AND rowid<?)"));
    assert_non_null(strstr(buffer_text(&plan).data,
                           "SEARCH " OWN_TABLE " USING INTEGER "
                           "PRIMARY KEY (rowid>? AND rowid<?)"));
    buffer_clear(&plan);
    explain(f, SQL_EVENT_PAGE_AGGREGATE, 8, &plan);
    assert_null(strstr(buffer_text(&plan).data, "TEMP B-TREE"));
    assert_non_null(strstr(buffer_text(&plan).data,
                           "idx_EVENT_STORE_partition (partition_key=? AND "
                           "global_position>? AND global_position<?)"));
    buffer_free(&plan);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

static void announce(struct fixture *f, struct event_range range,
                     struct event_page *page)
{
    check_ok(f, db_begin(f->db, &f->diag));
    event_page_announce(event_store_topic(f->store), f->db, &everything, &range,
                        page);
    check_ok(f, db_commit(f->db, NULL, &f->diag));
    event_page_fetch(event_store_topic(f->store), f->db, &everything, page);
}

static void a_page_that_was_fetched_is_what_the_range_begins_with(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.arena = ARENA_EMPTY};

    append_six(f);
    announce(f, range_of(1, 5, 10), &page);
    read_page(f, &everything, range_of(1, 6, 10), &page);
    expect_positions(&page, (int64_t[]){2, 3, 4, 5, 0});
    assert_int_equal(page.through, 5);
    announce(f, range_of(1, 6, 10), &page);
    read_page(f, &everything, range_of(1, 6, 2), &page); /* fewer by now */
    expect_positions(&page, (int64_t[]){2, 3, 0});
    assert_int_equal(page.through, 3);
    event_page_free(&page);
}

static void a_page_that_was_fetched_is_not_taken_for_another(void **state)
{
    struct fixture *f = *state;
    struct event_page page = {.arena = ARENA_EMPTY};

    append_six(f);
    announce(f, range_of(1, 6, 10), &page);
    read_page(f, &everything, range_of(2, 6, 10), &page);
    expect_positions(&page, (int64_t[]){3, 4, 5, 6, 0});
    announce(f, range_of(1, 6, 10), &page);
    read_page(f, &everything, range_of(1, 3, 10), &page); /* up to less */
    expect_positions(&page, (int64_t[]){2, 3, 0});
    read_page(f, &everything, range_of(1, 6, 10), &page); /* taken once */
    expect_positions(&page, (int64_t[]){2, 3, 4, 5, 6, 0});
    event_page_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page_that_was_fetched_is_what_the_range_begins_with),
        TEST(a_page_that_was_fetched_is_not_taken_for_another),
        TEST(reads_a_message_as_it_was_written),
        TEST(reads_across_the_tables_in_position_order),
        TEST(stops_at_the_mark),
        TEST(goes_through_the_last_message_of_a_full_page),
        TEST(goes_through_the_mark_when_the_rest_is_unwanted),
        TEST(bounds_the_page_by_payload_bytes),
        TEST(filters_by_aggregate_type_id_and_partition),
        TEST(tells_types_apart_by_every_byte),
        TEST(walks_a_long_stretch_of_unwanted_events_in_steps),
        TEST(counts_what_matches_up_to_a_limit),
        TEST(never_sorts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
