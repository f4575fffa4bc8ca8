/* How instances divide the partitions of their consumers. */
#include "lease_support.h"

static void the_first_one_takes_everything(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g);

    balance(g, a);
    for (int c = 0; c < CONSUMERS; c++) {
        assert_int_equal(a->leases[c].count, PARTITIONS);
        assert_true(a->leases[c].changed);
        for (int p = 0; p < PARTITIONS; p++) {
            assert_int_equal(a->leases[c].generation[p], 1);
            assert_int_equal(generation_of(g, c, p), 1);
            assert_int_equal(holder_of(g, c, p), 0);
            assert_false(a->leases[c].taken_over[p]);
        }
    }
    assert_false(look(g, a));
}

static void an_arrival_gets_its_share_and_nothing_else_moves(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b, *c;
    int holders[CONSUMERS][PARTITIONS];

    balance(g, a);
    b = arrive(g);
    settle(g);
    for (int n = 0; n < CONSUMERS; n++) {
        assert_int_equal(a->leases[n].count, PARTITIONS / 2);
        assert_int_equal(b->leases[n].count, PARTITIONS / 2);
        for (int p = 0; p < PARTITIONS; p++)
            holders[n][p] = holder_of(g, n, p);
    }
    c = arrive(g);
    settle(g);
    for (int n = 0; n < CONSUMERS; n++) {
        assert_int_equal(c->leases[n].count, PARTITIONS / 3);
        for (int p = 0; p < PARTITIONS; p++) {
            bool moved = holder_of(g, n, p) != holders[n][p];

            assert_true(!moved || holder_of(g, n, p) == 2);
            assert_int_equal(leases_hold(&c->leases[n], p), moved);
        }
    }
}

static void what_is_handed_over_is_free_before_another_has_it(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b;

    balance(g, a);
    b = arrive(g);
    balance(g, b); /* nothing is free yet */
    assert_int_equal(b->leases[0].count, 0);
    assert_true(b->coordinator.awaits);
    assert_true(look(g, a));
    assert_true(a->consumers[0].changing);
    assert_int_equal(a->leases[0].count, PARTITIONS); /* not before it acts */
    act(g, a);
    assert_int_equal(a->leases[0].count, PARTITIONS / 2);
    for (int p = 0; p < PARTITIONS; p++)
        assert_int_equal(holder_of(g, 0, p),
                         leases_hold(&a->leases[0], p) ? 0 : -1);
    balance(g, b);
    assert_false(b->coordinator.awaits);
    for (int p = 0; p < PARTITIONS; p++) {
        bool moved = leases_hold(&b->leases[0], p);

        assert_int_equal(generation_of(g, 0, p), moved ? 2 : 1);
        assert_false(b->leases[0].taken_over[p]); /* it was let go of */
    }
}

static void what_a_lapsed_one_holds_is_taken_over(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b = arrive(g);

    settle(g);
    assert_int_equal(b->leases[0].count, PARTITIONS / 2);
    lapse(g, a);
    balance(g, b);
    assert_int_equal(b->leases[0].count, PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        assert_int_equal(b->leases[0].taken_over[p],
                         leases_hold(&a->leases[0], p));
    /* its rows are gone, and it learns what it has lost */
    assert_int_equal(number(g->f, "SELECT count(*) FROM PARTITION_INSTANCES"),
                     1);
    assert_int_equal(number(g->f, "SELECT count(*) FROM PARTITION_MEMBERS"),
                     CONSUMERS);
    (void)look(g, a); /* it lives all the same, and says so */
    assert_int_equal(number(g->f, "SELECT count(*) FROM PARTITION_INSTANCES"),
                     2);
    (void)look(g, a);
    assert_int_equal(a->leases[0].count, 0);
    settle(g);
    assert_int_equal(a->leases[0].count, PARTITIONS / 2);
}

static void a_lapsed_one_that_nobody_replaced_keeps_what_it_holds(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g);

    balance(g, a);
    lapse(g, a);
    (void)look(g, a);
    assert_int_equal(a->leases[0].count, PARTITIONS);
    assert_false(look(g, a));
    assert_int_equal(a->leases[0].count, PARTITIONS);
    assert_int_equal(generation_of(g, 0, 0), 1);
}

static void one_that_leaves_lets_go_of_everything(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b = arrive(g);

    settle(g);
    ok(g->f, coordinator_leave(&a->coordinator, &g->f->diag));
    assert_int_equal(a->leases[0].count, 0);
    assert_int_equal(number(g->f, "SELECT count(*) FROM PARTITION_INSTANCES"),
                     1);
    balance(g, b);
    assert_int_equal(b->leases[0].count, PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        assert_false(b->leases[0].taken_over[p]);
}

static void partitions_that_belong_together_have_one_holder(void **state)
{
    struct ground *g = *state;

    for (int n = 0; n < 3; n++)
        (void)arrive(g);
    for (int n = 0; n < 3; n++)
        for (int c = 0; c < CONSUMERS; c++)
            g->instances[n].consumers[c].together = true;
    settle(g);
    for (int c = 0; c < CONSUMERS; c++) {
        int holder = holder_of(g, c, 0);

        assert_in_range(holder, 0, 2);
        for (int p = 1; p < PARTITIONS; p++)
            assert_int_equal(holder_of(g, c, p), holder);
    }
}

static void a_heartbeat_carries_several_instances(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b = arrive(g);
    const char *ids[] = {a->coordinator.id, b->coordinator.id, "nobody"};
    int64_t refreshed;
    bool acts;

    settle(g);
    lapse(g, a);
    lapse(g, b);
    ok(g->f, instance_refresh(g->f->db, g->catalog, ids, 3, LONG_LIFE,
                              &refreshed, &g->f->diag));
    assert_int_equal(refreshed, 2);
    ok(g->f, coordinator_look(&a->coordinator, &acts, &g->f->diag));
    assert_false(acts);
    assert_int_equal(a->leases[0].count, PARTITIONS / 2);
}

/* A take-over does not wait for a transaction of who lapsed: that one holds
 * its partitions until it ends, and the others are taken. */
static void a_lease_that_is_locked_is_left_for_the_next_time(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b = arrive(g);
    char text[256];
    int locked = -1;
    bool servers = (db_abilities(g->f->db) & DB_CAN_MANY_HOSTS) != 0;

    settle(g);
    for (int p = 0; p < PARTITIONS; p++)
        if (leases_hold(&a->leases[0], p))
            locked = p;
    if (servers) {
        begin(g->f);
        snprintf(text, sizeof(text),
                 "UPDATE PARTITION_OWNERSHIP SET generation = generation"
                 " WHERE consumer_name = 'orders' AND partition_no = %d",
                 locked);
        struct db_sql sql = sql_of(text);

        ok(g->f, db_execute(g->f->db, &sql, NULL, 0, NULL, &g->f->diag));
    }
    struct db *other = fixture_connect(g->f);

    snprintf(text, sizeof(text),
             "UPDATE PARTITION_INSTANCES SET expires_at = last_heartbeat"
             " WHERE instance_id = '%s'",
             a->coordinator.id);
    ok(g->f, db_script(other, text_of(text), DB_HOST, &g->f->diag));
    balance(g, b);
    assert_int_equal(b->leases[0].count, servers ? PARTITIONS - 1 : PARTITIONS);
    assert_int_equal(b->leases[1].count, PARTITIONS);
    if (servers) {
        assert_true(b->coordinator.awaits);
        db_rollback(g->f->db);
        balance(g, b);
        assert_int_equal(b->leases[0].count, PARTITIONS);
        assert_true(b->leases[0].taken_over[locked]);
    }
    db_close(other);
}

/* Whoever stands still in the transaction of a heartbeat keeps the locks of its
 * row: its partitions are taken over all the same, and the row goes later. */
static void a_lapsed_one_whose_row_is_locked_is_taken_over(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b = arrive(g);
    char text[256];
    struct db_sql sql;

    if ((db_abilities(g->f->db) & DB_CAN_MANY_HOSTS) == 0)
        return; /* such a transaction keeps everybody from writing */
    settle(g);
    lapse(g, a);
    begin(g->f);
    snprintf(text, sizeof(text),
             "UPDATE PARTITION_INSTANCES SET host_name = 'stopped'"
             " WHERE instance_id = '%s'",
             a->coordinator.id);
    sql = sql_of(text);
    ok(g->f, db_execute(g->f->db, &sql, NULL, 0, NULL, &g->f->diag));
    balance(g, b);
    for (int c = 0; c < CONSUMERS; c++)
        assert_int_equal(b->leases[c].count, PARTITIONS);
    db_rollback(g->f->db);
    assert_int_equal(number(g->f, "SELECT count(*) FROM PARTITION_INSTANCES"),
                     2);
    assert_true(look(g, b));
    act(g, b);
    assert_int_equal(number(g->f, "SELECT count(*) FROM PARTITION_INSTANCES"),
                     1);
    assert_int_equal(number(g->f, "SELECT count(*) FROM PARTITION_MEMBERS"),
                     CONSUMERS);
}

/* Between a look and what it leads to, the one that had lapsed may have said
 * that it lives. */
static void what_lives_again_is_not_taken(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b = arrive(g);
    const char *id = a->coordinator.id;
    int64_t refreshed;

    settle(g);
    lapse(g, a);
    assert_true(look(g, b));
    ok(g->f, instance_refresh(g->f->db, g->catalog, &id, 1, LONG_LIFE,
                              &refreshed, &g->f->diag));
    act(g, b);
    for (int c = 0; c < CONSUMERS; c++) {
        assert_int_equal(b->leases[c].count, PARTITIONS / 2);
        for (int p = 0; p < PARTITIONS; p++)
            assert_int_equal(holder_of(g, c, p),
                             leases_hold(&a->leases[c], p) ? 0 : 1);
    }
}

/* ... or a third one may have had it, and let go of it again. */
static void what_was_held_meanwhile_is_not_taken(void **state)
{
    struct ground *g = *state;
    struct instance *a = arrive(g), *b, *c;

    settle(g);
    lapse(g, a);
    c = arrive(g);
    assert_true(look(g, c));
    b = arrive(g);
    lapse(g, c); /* so that all of it is the other one's */
    balance(g, b);
    assert_int_equal(b->leases[0].count, PARTITIONS);
    ok(g->f, coordinator_leave(&b->coordinator, &g->f->diag));
    act(g, c);
    for (int p = 0; p < PARTITIONS; p++) {
        assert_int_equal(holder_of(g, 0, p), -1);
        assert_false(leases_hold(&c->leases[0], p));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERYWHERE(the_first_one_takes_everything),
        EVERYWHERE(an_arrival_gets_its_share_and_nothing_else_moves),
        EVERYWHERE(what_is_handed_over_is_free_before_another_has_it),
        EVERYWHERE(what_a_lapsed_one_holds_is_taken_over),
        EVERYWHERE(a_lapsed_one_that_nobody_replaced_keeps_what_it_holds),
        EVERYWHERE(one_that_leaves_lets_go_of_everything),
        EVERYWHERE(partitions_that_belong_together_have_one_holder),
        EVERYWHERE(a_heartbeat_carries_several_instances),
        EVERYWHERE(a_lease_that_is_locked_is_left_for_the_next_time),
        EVERYWHERE(a_lapsed_one_whose_row_is_locked_is_taken_over),
        EVERYWHERE(what_lives_again_is_not_taken),
        EVERYWHERE(what_was_held_meanwhile_is_not_taken),
    };

    return cmocka_run_group_tests_name("coordinator", tests, NULL, NULL);
}
