/*
 * High-water mark: follows the committed counter, never goes down, is moved by
 * compare-and-set.
 */
#include "topic_fixture.h"

#include "topic/high_water_mark.h"

static struct high_water_mark read_mark(struct fixture *f)
{
    struct high_water_mark mark;

    check_ok(f, high_water_mark_read(f->db, f->catalog, TOPIC_EVENT_STORE,
                                     &mark, &f->diag));
    return mark;
}

static enum status advance(struct fixture *f, struct high_water_mark *mark)
{
    return high_water_mark_advance(f->db, f->catalog, TOPIC_EVENT_STORE, mark,
                                   &f->diag);
}

static void starts_at_0(void **state)
{
    struct fixture *f = *state;
    struct high_water_mark mark = read_mark(f);

    assert_int_equal(mark.mark, 0);
    assert_int_equal(mark.end, 0);
    assert_int_equal(mark.start, 0);
    check_ok(f, advance(f, &mark));
    assert_int_equal(mark.mark, 0);
}

static void follows_what_is_committed(void **state)
{
    struct fixture *f = *state;
    struct high_water_mark mark;

    append_one(f, event_of("t", "i", "1"));
    append_one(f, event_of(OWN_TYPE, "i", "2"));
    mark = read_mark(f);
    assert_int_equal(mark.mark, 0);
    assert_int_equal(mark.end, 2);
    assert_int_equal(high_water_mark_readable(f->db, &mark), 2);
    check_ok(f, advance(f, &mark));
    assert_int_equal(mark.mark, 2);
    assert_int_equal(read_mark(f).mark, 2);
}

static void writes_nothing_when_there_is_nothing_to_move(void **state)
{
    struct fixture *f = *state;
    struct high_water_mark mark;

    append_one(f, event_of("t", "i", "1"));
    check_ok(f, advance(f, &mark));
    run_sql(f, "CREATE TRIGGER no_write BEFORE UPDATE ON HIGH_WATER_MARK_STORE"
               " BEGIN SELECT raise(ABORT, 'written'); END");
    check_ok(f, advance(f, &mark));
    assert_int_equal(mark.mark, 1);
    append_one(f, event_of("t", "i", "2"));
    assert_int_equal(advance(f, &mark), STATUS_PERMANENT);
    expect_message(f, "written");
    assert_false(db_in_transaction(f->db));
}

static void refuses_an_older_copy_of_the_database(void **state)
{
    struct fixture *f = *state;
    struct high_water_mark mark;

    append_one(f, event_of("t", "i", "1"));
    append_one(f, event_of("t", "i", "2"));
    check_ok(f, advance(f, &mark));
    run_sql(f, "UPDATE EVENT_STORE_GLOBAL_POSITION SET val = 1");
    assert_int_equal(advance(f, &mark), STATUS_REFUSED);
    expect_message(f, "topic event-store ends at position 1, below its "
                      "high-water mark 2");
    mark = read_mark(f);
    assert_int_equal(mark.mark, 2);
    assert_int_equal(high_water_mark_readable(f->db, &mark), 2);
}

/* The statement itself: a mark that another host has moved stays. */
static void loses_the_compare_and_set_when_the_mark_has_moved(void **state)
{
    struct fixture *f = *state;
    struct db_value params[] = {db_string(TOPIC_EVENT_STORE), db_integer(0),
                                db_integer(1), db_null(), db_integer(0)};
    int64_t affected = -1;

    run_sql(f, "UPDATE HIGH_WATER_MARK_STORE SET high_water_mark = 5"
               " WHERE topic_name = 'event-store'");
    check_ok(f, db_execute(f->db, catalog_sql(f->catalog, SQL_MARK_ADVANCE),
                           params, 5, &affected, &f->diag));
    assert_int_equal(affected, 0);
    assert_int_equal(read_mark(f).mark, 5);
}

static void names_a_topic_without_a_row(void **state)
{
    struct fixture *f = *state;
    struct high_water_mark mark = {.mark = 7};

    assert_int_equal(
        high_water_mark_read(f->db, f->catalog, "elsewhere", &mark, &f->diag),
        STATUS_CONFIG);
    expect_message(f, "topic elsewhere has no high-water mark");
    assert_int_equal(mark.mark, 7);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(starts_at_0),
        TEST(follows_what_is_committed),
        TEST(writes_nothing_when_there_is_nothing_to_move),
        TEST(refuses_an_older_copy_of_the_database),
        TEST(loses_the_compare_and_set_when_the_mark_has_moved),
        TEST(names_a_topic_without_a_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
