/* One at a time moves a topic's mark, and who has lapsed can do no harm. */
#include "lease_support.h"

#include "topic/high_water_mark.h"
#include "topic/message.h"

/* One that moves the mark, with a connection of its own. */
struct mover {
    struct db *db;
    struct mark_detector detector;
    struct high_water_mark mark;
};

static struct mover mover_open(struct ground *g, const char *name)
{
    return (struct mover){
        .db = fixture_connect(g->f),
        .detector = {.owner = name, .lease_us = LONG_LIFE},
    };
}

static int64_t detect(struct ground *g, struct mover *m)
{
    m->detector.asked_at = 0;
    ok(g->f, high_water_mark_detect(m->db, g->catalog, TOPIC_EVENT_STORE,
                                    &m->detector, &m->mark, &g->f->diag));
    return m->mark.mark;
}

/* Hands out a position, as an append does. */
static int64_t draw(struct ground *g)
{
    const struct db_value count = db_integer(1);
    int64_t position;
    bool found;

    begin(g->f);
    ok(g->f,
       db_query_int64(g->f->db, catalog_sql(g->catalog, SQL_APPEND_POSITIONS),
                      &count, 1, &position, &found, &g->f->diag));
    commit(g->f);
    return position;
}

static void expire(struct ground *g)
{
    run(g->f, "UPDATE HIGH_WATER_MARK_STORE SET lease_expires_at ="
              " (SELECT max(started_at) FROM PARTITION_INSTANCES)"
              " WHERE lease_owner IS NOT NULL");
}

static void whoever_moves_the_mark_first_goes_on_with_it(void **state)
{
    struct ground *g = *state;
    struct mover a = mover_open(g, "a"), b = mover_open(g, "b");
    int64_t first = draw(g), second;

    assert_int_equal(detect(g, &a), first);
    assert_false(a.detector.left);
    second = draw(g);
    assert_int_equal(detect(g, &b), first);
    assert_true(b.detector.left);
    assert_int_equal(b.mark.end, second);
    assert_int_equal(detect(g, &a), second);
    assert_int_equal(detect(g, &b), second);
    db_close(a.db);
    db_close(b.db);
}

static void another_goes_on_when_the_lease_has_lapsed(void **state)
{
    struct ground *g = *state;
    struct mover a = mover_open(g, "a"), b = mover_open(g, "b");
    int64_t last;

    (void)arrive(g);
    (void)draw(g);
    (void)detect(g, &a);
    last = draw(g);
    (void)detect(g, &b);
    assert_true(b.detector.left);
    expire(g);
    assert_int_equal(detect(g, &b), last);
    assert_false(b.detector.left);
    assert_int_equal(detect(g, &a), last);
    assert_true(a.detector.left);
    db_close(a.db);
    db_close(b.db);
}

static void another_goes_on_at_once_when_the_lease_was_given_back(void **state)
{
    struct ground *g = *state;
    struct mover a = mover_open(g, "a"), b = mover_open(g, "b");
    int64_t last;

    (void)draw(g);
    (void)detect(g, &a);
    ok(g->f, high_water_mark_leave(g->f->db, g->catalog, "a", &g->f->diag));
    last = draw(g);
    assert_int_equal(detect(g, &b), last);
    assert_false(b.detector.left);
    db_close(a.db);
    db_close(b.db);
}

/* A mover read the mark, was stopped, and goes on after another has the lease:
 * what it writes then changes nothing. */
static void one_that_was_stopped_moves_nothing(void **state)
{
    struct ground *g = *state;
    struct mover a = mover_open(g, "a"), b = mover_open(g, "b");
    struct db_value params[] = {db_string(TOPIC_EVENT_STORE), db_null(),
                                db_null(), db_string("a"),
                                db_integer(LONG_LIFE)};
    int64_t affected = -1, mark;

    (void)arrive(g);
    (void)draw(g);
    (void)detect(g, &a);
    expire(g);
    (void)draw(g);
    mark = detect(g, &b);
    /* it has read the newest mark, so only the lease stands in its way */
    params[1] = db_integer(mark);
    params[2] = db_integer(mark + 100);
    ok(g->f, db_begin(a.db, &g->f->diag));
    ok(g->f, db_execute(a.db, catalog_sql(g->catalog, SQL_MARK_ADVANCE), params,
                        5, &affected, &g->f->diag));
    assert_int_equal(affected, 0);
    ok(g->f, db_commit(a.db, NULL, &g->f->diag));
    params[3] = db_string("b");
    ok(g->f, db_begin(b.db, &g->f->diag));
    ok(g->f, db_execute(b.db, catalog_sql(g->catalog, SQL_MARK_ADVANCE), params,
                        5, &affected, &g->f->diag));
    assert_int_equal(affected, 1); /* the statement works for who has it */
    db_rollback(b.db);
    db_close(a.db);
    db_close(b.db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERYWHERE(whoever_moves_the_mark_first_goes_on_with_it),
        EVERYWHERE(another_goes_on_when_the_lease_has_lapsed),
        EVERYWHERE(another_goes_on_at_once_when_the_lease_was_given_back),
        EVERYWHERE(one_that_was_stopped_moves_nothing),
    };

    return cmocka_run_group_tests_name("mark_lease", tests, NULL, NULL);
}
