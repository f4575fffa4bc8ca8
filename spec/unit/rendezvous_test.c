/* How partitions are divided among members; nothing but memory. */
#include "partition/rendezvous.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_MEMBERS = 9, MOST_PARTITIONS = 40, CONSUMERS = 20 };

static const int partition_counts[] = {1, 7, 12, 40};
#define COUNTS (sizeof(partition_counts) / sizeof(partition_counts[0]))

/* Members as ids that rise; all are there, and a test leaves some out. */
struct members {
    char ids[MOST_MEMBERS][32];
    struct text texts[MOST_MEMBERS];
};

static void name_members(struct members *m)
{
    for (int i = 0; i < MOST_MEMBERS; i++) {
        snprintf(m->ids[i], sizeof(m->ids[i]), "%d-instance", i);
        m->texts[i] = text_of(m->ids[i]);
    }
}

static void assign(const struct text *members, int nmembers, int consumer,
                   int partitions, bool together, const int *holders,
                   int *wanted)
{
    char name[32];

    snprintf(name, sizeof(name), "consumer-%d", consumer);
    rendezvous_assign(
        &(struct rendezvous){
            .type = "projection",
            .name = name,
            .together = together,
            .members = members,
            .nmembers = nmembers,
            .partitions = partitions,
            .holders = holders,
        },
        wanted);
}

static void nobody_holds(int *holders)
{
    for (int p = 0; p < MOST_PARTITIONS; p++)
        holders[p] = RENDEZVOUS_NOBODY;
}

static void count_shares(const int *wanted, int partitions, int *shares)
{
    memset(shares, 0, MOST_MEMBERS * sizeof(*shares));
    for (int p = 0; p < partitions; p++)
        shares[wanted[p]]++;
}

static void assert_equal_shares(const int *wanted, int partitions, int nmembers)
{
    int shares[MOST_MEMBERS];

    for (int p = 0; p < partitions; p++)
        assert_true(wanted[p] >= 0 && wanted[p] < nmembers);
    count_shares(wanted, partitions, shares);
    for (int m = 0; m < nmembers; m++)
        assert_in_range(shares[m], partitions / nmembers,
                        (partitions + nmembers - 1) / nmembers);
}

/* --- a test for every number of partitions, members and consumers --------- */

struct deal {
    struct members m;
    int consumer, partitions, nmembers;
    int holders[MOST_PARTITIONS]; /* what was divided when nobody held any */
};

static void each_deal(void (*test)(const struct deal *deal))
{
    struct deal d;
    int nobody[MOST_PARTITIONS];

    name_members(&d.m);
    nobody_holds(nobody);
    for (size_t n = 0; n < COUNTS; n++)
        for (d.nmembers = 1; d.nmembers < MOST_MEMBERS; d.nmembers++)
            for (d.consumer = 0; d.consumer < CONSUMERS; d.consumer++) {
                d.partitions = partition_counts[n];
                assign(d.m.texts, d.nmembers, d.consumer, d.partitions, false,
                       nobody, d.holders);
                test(&d);
            }
}

static void is_shared_equally(const struct deal *d)
{
    assert_equal_shares(d->holders, d->partitions, d->nmembers);
}

static void shares_are_equal_within_one(void **state)
{
    (void)state;
    each_deal(is_shared_equally);
}

static void stays(const struct deal *d)
{
    int nobody[MOST_PARTITIONS], wanted[MOST_PARTITIONS];

    nobody_holds(nobody);
    assign(d->m.texts, d->nmembers, d->consumer, d->partitions, false, nobody,
           wanted);
    assert_memory_equal(wanted, d->holders,
                        (size_t)d->partitions * sizeof(*wanted));
    assign(d->m.texts, d->nmembers, d->consumer, d->partitions, false,
           d->holders, wanted);
    assert_memory_equal(wanted, d->holders,
                        (size_t)d->partitions * sizeof(*wanted));
}

static void the_same_tables_give_the_same_division_and_it_stays(void **state)
{
    (void)state;
    each_deal(stays);
}

/* The last member arrives: what moves goes to it, and is its share. */
static void only_the_share_of_the_arrival_moves(const struct deal *d)
{
    int wanted[MOST_PARTITIONS], shares[MOST_MEMBERS], moved = 0;

    assign(d->m.texts, d->nmembers + 1, d->consumer, d->partitions, false,
           d->holders, wanted);
    assert_equal_shares(wanted, d->partitions, d->nmembers + 1);
    for (int p = 0; p < d->partitions; p++) {
        if (wanted[p] == d->holders[p])
            continue;
        assert_int_equal(wanted[p], d->nmembers);
        moved++;
    }
    count_shares(wanted, d->partitions, shares);
    assert_int_equal(moved, shares[d->nmembers]);
    assert_int_equal(moved, d->partitions / (d->nmembers + 1));
}

static void an_arrival_moves_its_own_share_only(void **state)
{
    (void)state;
    each_deal(only_the_share_of_the_arrival_moves);
}

/* Without member `gone`; those above it have one index less. */
static void leave(const struct deal *d, int gone)
{
    struct text members[MOST_MEMBERS];
    int holders[MOST_PARTITIONS], wanted[MOST_PARTITIONS];

    for (int m = 0, at = 0; m < d->nmembers; m++)
        if (m != gone)
            members[at++] = d->m.texts[m];
    for (int p = 0; p < d->partitions; p++)
        holders[p] = d->holders[p] == gone
                         ? RENDEZVOUS_NOBODY
                         : d->holders[p] - (d->holders[p] > gone);
    assign(members, d->nmembers - 1, d->consumer, d->partitions, false, holders,
           wanted);
    if (d->nmembers == 1) {
        for (int p = 0; p < d->partitions; p++)
            assert_int_equal(wanted[p], RENDEZVOUS_NOBODY);
        return;
    }
    assert_equal_shares(wanted, d->partitions, d->nmembers - 1);
    for (int p = 0; p < d->partitions; p++)
        if (holders[p] != RENDEZVOUS_NOBODY)
            assert_int_equal(wanted[p], holders[p]);
}

static void each_leaves(const struct deal *d)
{
    for (int gone = 0; gone < d->nmembers; gone++)
        leave(d, gone);
}

static void a_departure_moves_what_the_departed_held_only(void **state)
{
    (void)state;
    each_deal(each_leaves);
}

static void partitions_that_belong_together_go_to_one(const struct deal *d)
{
    int wanted[MOST_PARTITIONS];

    assign(d->m.texts, d->nmembers, d->consumer, d->partitions, true,
           d->holders, wanted);
    for (int p = 0; p < d->partitions; p++)
        assert_int_equal(wanted[p], wanted[0]);
    assert_in_range(wanted[0], 0, d->nmembers - 1);
}

static void what_belongs_together_stays_together(void **state)
{
    (void)state;
    each_deal(partitions_that_belong_together_go_to_one);
}

/* Else one of many hosts would have all consumers that are not divided. */
static void consumers_are_spread_over_the_members(void **state)
{
    struct members m;
    int nobody[MOST_PARTITIONS], wanted[MOST_PARTITIONS];
    int consumers[3] = {0};

    (void)state;
    name_members(&m);
    nobody_holds(nobody);
    for (int c = 0; c < 300; c++) {
        assign(m.texts, 3, c, 12, true, nobody, wanted);
        consumers[wanted[0]]++;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(consumers[i], 60, 140);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_equal_within_one),
        cmocka_unit_test(the_same_tables_give_the_same_division_and_it_stays),
        cmocka_unit_test(an_arrival_moves_its_own_share_only),
        cmocka_unit_test(a_departure_moves_what_the_departed_held_only),
        cmocka_unit_test(what_belongs_together_stays_together),
        cmocka_unit_test(consumers_are_spread_over_the_members),
    };

    return cmocka_run_group_tests_name("rendezvous", tests, NULL, NULL);
}
