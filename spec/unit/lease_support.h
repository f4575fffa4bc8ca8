/*
 * Support for the tests of leases: an empty database with the host's tables on
 * every driver, and instances that each have a connection of their own and run
 * the same consumers.
 */
#ifndef SPEC_UNIT_LEASE_SUPPORT_H
#define SPEC_UNIT_LEASE_SUPPORT_H

#include "db_support.h"

#include "base/clock.h"
#include "partition/coordinator.h"
#include "partition/instance.h"
#include "schema/schema.h"

#define PARTITIONS 12
#define LONG_LIFE  (60 * CLOCK_SECOND)

enum { CONSUMERS = 2, INSTANCES = 4 };

static const char *const consumer_names[CONSUMERS] = {"orders", "totals"};

struct instance {
    struct coordinator coordinator;
    struct coordinator_consumer consumers[CONSUMERS];
    struct leases leases[CONSUMERS];
};

struct ground {
    struct fixture *f;
    struct names names;
    struct catalog *catalog;
    struct uuid_source ids;
    struct coordinator_times times;
    struct instance instances[INSTANCES];
    size_t count;
};

static inline int ground_open(void **state, struct fixture *f)
{
    struct ground *g = calloc(1, sizeof(*g));
    struct schema_options schema = {.partitions = PARTITIONS, .create = true};

    g->f = f;
    names_default(&g->names);
    schema.names = &g->names;
    ok(f, schema_prepare(f->db, &schema, &f->diag));
    ok(f,
       catalog_open(db_dialect(f->db), g->names.fill, &g->catalog, &f->diag));
    g->times = (struct coordinator_times){
        .duration = LONG_LIFE,
        .heartbeat = LONG_LIFE / 5,
        .rebalance = LONG_LIFE / 5,
    };
    *state = g;
    return 0;
}

/* An instance that has a row, memberships and nothing else. */
static inline struct instance *arrive(struct ground *g)
{
    struct instance *i = &g->instances[g->count++];

    assert_true(g->count <= INSTANCES);
    coordinator_init(&i->coordinator, fixture_connect(g->f), g->catalog,
                     &g->times, PARTITIONS, &g->ids, NULL);
    for (int c = 0; c < CONSUMERS; c++) {
        leases_init(&i->leases[c], PARTITIONS);
        i->consumers[c] = (struct coordinator_consumer){
            .type = "projection",
            .name = consumer_names[c],
            .leases = &i->leases[c],
        };
    }
    i->coordinator.consumers = i->consumers;
    i->coordinator.count = CONSUMERS;
    ok(g->f, coordinator_join(&i->coordinator, &g->f->diag));
    return i;
}

static inline int ground_close(void **state, int (*teardown)(void **state))
{
    struct ground *g = *state;
    struct fixture *f = g->f;

    for (size_t n = 0; n < g->count; n++) {
        struct instance *i = &g->instances[n];

        db_close(i->coordinator.db);
        coordinator_free(&i->coordinator);
        for (int c = 0; c < CONSUMERS; c++)
            leases_free(&i->leases[c]);
    }
    catalog_close(g->catalog);
    names_free(&g->names);
    free(g);
    *state = f;
    return teardown(state);
}

static inline int ground_setup_sqlite(void **state)
{
    (void)fixture_setup(state);
    return ground_open(state, *state);
}

static inline int ground_teardown_sqlite(void **state)
{
    return ground_close(state, fixture_teardown);
}

static inline int ground_setup_postgres(void **state)
{
    (void)postgres_setup(state);
    return ground_open(state, *state);
}

static inline int ground_setup_pooled(void **state)
{
    (void)postgres_setup_pooled(state);
    return ground_open(state, *state);
}

static inline int ground_teardown_postgres(void **state)
{
    return ground_close(state, postgres_teardown);
}

static inline int ground_setup_mariadb(void **state)
{
    (void)mariadb_setup(state);
    return ground_open(state, *state);
}

static inline int ground_teardown_mariadb(void **state)
{
    return ground_close(state, mariadb_teardown);
}

/* --- steps ---------------------------------------------------------------- */

static inline bool look(struct ground *g, struct instance *i)
{
    bool acts = false;

    ok(g->f, coordinator_look(&i->coordinator, &acts, &g->f->diag));
    return acts;
}

static inline void act(struct ground *g, struct instance *i)
{
    ok(g->f, coordinator_act(&i->coordinator, &g->f->diag));
}

static inline void balance(struct ground *g, struct instance *i)
{
    if (look(g, i))
        act(g, i);
}

/* Until nobody has anything to do. */
static inline void settle(struct ground *g)
{
    bool acts = true;

    for (int round = 0; acts; round++) {
        assert_true(round < 20);
        acts = false;
        for (size_t n = 0; n < g->count; n++) {
            struct instance *i = &g->instances[n];

            if (!i->coordinator.joined || !look(g, i))
                continue;
            acts = true;
            act(g, i);
        }
    }
}

/* The instance's row says that it has lapsed, as after a silence. */
static inline void lapse(struct ground *g, const struct instance *i)
{
    char text[256];

    snprintf(text, sizeof(text),
             "UPDATE PARTITION_INSTANCES SET expires_at = last_heartbeat"
             " WHERE instance_id = '%s'",
             i->coordinator.id);
    ok(g->f, db_script(g->f->db, text_of(text), DB_HOST, &g->f->diag));
}

static inline int64_t generation_of(struct ground *g, int consumer,
                                    int partition)
{
    char text[256];

    snprintf(text, sizeof(text),
             "SELECT generation FROM PARTITION_OWNERSHIP"
             " WHERE consumer_name = '%s' AND partition_no = %d",
             consumer_names[consumer], partition);
    return number(g->f, text);
}

/* Which instance the table names; -1: none. */
static inline int holder_of(struct ground *g, int consumer, int partition)
{
    char text[256];

    for (size_t n = 0; n < g->count; n++) {
        snprintf(text, sizeof(text),
                 "SELECT count(*) FROM PARTITION_OWNERSHIP WHERE"
                 " consumer_name = '%s' AND partition_no = %d AND"
                 " instance_id = '%s'",
                 consumer_names[consumer], partition,
                 g->instances[n].coordinator.id);
        if (number(g->f, text) == 1)
            return (int)n;
    }
    return -1;
}

/* --- a test on every driver ------------------------------------------------
 */

#define ON(name, where, setup, teardown)                                       \
    {                                                                          \
#name " (" where ")", name, setup, teardown, NULL                      \
    }
#define ON_SQLITE(name)                                                        \
    ON(name, "sqlite", ground_setup_sqlite, ground_teardown_sqlite)
#define ON_POSTGRES(name)                                                      \
    ON(name, "postgres", ground_setup_postgres, ground_teardown_postgres)
#define ON_MARIADB(name)                                                       \
    ON(name, "mariadb", ground_setup_mariadb, ground_teardown_mariadb)
#define EVERYWHERE(name)                                                       \
    ON_SQLITE(name), ON_POSTGRES(name),                                        \
        ON(name, "postgres, not prepared", ground_setup_pooled,                \
           ground_teardown_postgres),                                          \
        ON_MARIADB(name)

#endif
