/*
 * Leases over every order of the steps of two instances, each on a session of
 * its own: one applies under leases that the other takes over, or is given. A
 * step that meets a lock waits for it, and what its instance does next waits
 * behind it.
 */
#include "lease_support.h"

#include "consumer/checkpoint.h"
#include "consumer/registry.h"

#include <pthread.h>

#define SOURCE        "event-store"
#define PATIENT       (60 * CLOCK_SECOND)
#define HASTY         INT64_C(1000) /* SQLite has no lock that can be seen */
#define LOOK_AGAIN_US 100

enum { ACTORS = 2, LINES = 1 + ACTORS * PARTITIONS };

enum step {
    LAPSE,   /* the other's row says that it has lapsed */
    SET_OUT, /* look and act; on a server it stands still before its commit */
    GO_ON,
    BALANCE, /* look and act: hands over what is another's now */
    CHECK,   /* the processing transaction */
    WRITE,
    COMMIT,
};

struct actor {
    struct play *play; /* borrowed */
    struct instance *i;
    int64_t session; /* its number at the server */
    const enum step *steps;
    int granted, done;
    bool running; /* a thread of it is under way */
    bool passed;  /* a transaction is open in which the check has passed */
    pthread_t thread;
    bool started;
    struct checkpoints stored;
    enum status status;
    struct diag diag;
};

struct play {
    struct ground *g;
    struct actor actors[ACTORS];
    struct consumer_row row;
    struct db *holder; /* of what SET_OUT needs last */
    bool servers;
    int64_t written;                /* number of the last line in the ledger */
    int64_t generation[PARTITIONS]; /* as seen */
    int64_t committed[PARTITIONS];  /* highest in the ledger */
    bool seen[LINES];
    bool waits; /* a step waited in this order */
    int waited, free, fenced, commits;
};

/* --- the steps, in the thread of an instance ------------------------------ */

static struct leases *leases_of(struct actor *a)
{
    return &a->i->leases[0];
}

static enum status check(struct actor *a)
{
    struct coordinator *k = &a->i->coordinator;
    struct leases *leases = leases_of(a);
    struct checkpoint_lock lock;
    int lost = -1;
    enum status status;

    if (leases->count == 0)
        return STATUS_OK;
    status = db_begin(k->db, &a->diag);
    if (status == STATUS_OK)
        status = checkpoint_take(k->db, k->catalog, a->play->row.id, SOURCE,
                                 leases, k->id, &a->stored, &lock, &lost,
                                 &a->diag);
    a->passed = status == STATUS_OK && lost < 0;
    if (a->passed)
        return STATUS_OK;
    db_rollback(k->db);
    if (lost >= 0) {
        leases_drop_all(leases);
        __atomic_add_fetch(&a->play->fenced, 1, __ATOMIC_RELAXED);
    }
    return status;
}

static enum status write_lines(struct actor *a)
{
    struct db_sql sql = sql_of("INSERT INTO ledger VALUES (?1, ?2, ?3)");
    struct leases *leases = leases_of(a);
    enum status status = STATUS_OK;

    for (size_t n = 0; a->passed && status == STATUS_OK && n < leases->count;
         n++) {
        const struct db_value line[] = {
            db_integer(
                __atomic_add_fetch(&a->play->written, 1, __ATOMIC_RELAXED)),
            db_integer(leases->mine[n]), db_integer(leases->generations[n])};

        status = db_execute(a->i->coordinator.db, &sql, line, 3, NULL,
                            &a->diag);
    }
    return status;
}

static enum status commit_lines(struct actor *a)
{
    enum status status;

    if (!a->passed)
        return STATUS_OK;
    status = db_commit(a->i->coordinator.db, NULL, &a->diag);
    db_rollback(a->i->coordinator.db);
    a->passed = false;
    return status;
}

static enum status look_and_act(struct actor *a)
{
    bool acts;
    enum status status = coordinator_look(&a->i->coordinator, &acts, &a->diag);

    return status == STATUS_OK && acts
               ? coordinator_act(&a->i->coordinator, &a->diag)
               : status;
}

static enum status take_step(struct actor *a, enum step step)
{
    switch (step) {
    case SET_OUT:
    case BALANCE:
        return look_and_act(a);
    case CHECK:
        return check(a);
    case WRITE:
        return write_lines(a);
    case COMMIT:
        return commit_lines(a);
    case LAPSE:
    case GO_ON:
        break; /* the test's own */
    }
    return STATUS_OK;
}

static void *take_steps(void *arg)
{
    struct actor *a = arg;

    while (a->done < __atomic_load_n(&a->granted, __ATOMIC_ACQUIRE)) {
        enum status status = take_step(a, a->steps[a->done]);

        /* it met a lock for too long: it has done nothing */
        if (status == STATUS_CONFLICT)
            __atomic_store_n(&a->play->waits, true, __ATOMIC_RELAXED);
        else if (status != STATUS_OK)
            a->status = status;
        a->done++;
    }
    __atomic_store_n(&a->running, false, __ATOMIC_RELEASE);
    return NULL;
}

/* --- who waits ------------------------------------------------------------ */

/* The server's own words about its transactions, which are never old ones. */
static bool innodb_waits(struct play *p, int64_t session)
{
    struct db_sql sql = sql_of("SHOW ENGINE INNODB STATUS");
    struct db_rows *rows;
    struct buffer all = BUFFER_EMPTY;
    char name[64];
    const char *found;
    bool more, waits = false;

    ok(p->g->f, db_query(p->g->f->db, &sql, NULL, 0, &rows, &p->g->f->diag));
    ok(p->g->f, db_next(rows, &more, &p->g->f->diag));
    assert_true(more);
    buffer_append(&all, db_get_text(rows, 2).data, db_get_text(rows, 2).len);
    db_rows_close(rows);
    snprintf(name, sizeof(name), "MariaDB thread id %lld,", (long long)session);
    /* an earlier section tells of past deadlocks */
    found = strstr(all.data, "\nTRANSACTIONS\n");
    for (const char *at = found; at != NULL && !waits;) {
        const char *next = strstr(at + 1, "\n---TRANSACTION");
        const char *wait = strstr(at, "\nLOCK WAIT");
        const char *id = strstr(at, name);

        waits = wait != NULL && id != NULL && (next == NULL || wait < next) &&
                (next == NULL || id < next);
        at = next;
    }
    buffer_free(&all);
    return waits;
}

static bool is_waiting(struct play *p, const struct actor *a)
{
    char text[96];

    if (!p->servers)
        return false;
    if (is_mariadb(p->g->f))
        return innodb_waits(p, a->session);
    snprintf(text, sizeof(text), "SELECT cardinality(pg_blocking_pids(%lld))",
             (long long)a->session);
    return number(p->g->f, text) > 0;
}

static bool is_still(struct play *p, const struct actor *a)
{
    if (!__atomic_load_n(&a->running, __ATOMIC_ACQUIRE))
        return true;
    if (!is_waiting(p, a))
        return false;
    /* the other waits when it sets out, for the test */
    if (a == &p->actors[0])
        __atomic_store_n(&p->waits, true, __ATOMIC_RELAXED);
    return true;
}

/* Twice, for the end of one may have freed the other. */
static void until_still(struct play *p)
{
    int64_t end = clock_monotonic() + PATIENT;

    for (int still = 0; still < 2 * ACTORS;) {
        still = is_still(p, &p->actors[still % ACTORS]) ? still + 1 : 0;
        if (still == 0) /* they may need the processor that this would take */
            (void)usleep(LOOK_AGAIN_US);
        assert_true(clock_monotonic() < end);
    }
}

/* --- what must hold ------------------------------------------------------- */

static void see_leases(struct play *p)
{
    struct db_sql sql = sql_of(
        "SELECT partition_no, generation, instance_id FROM PARTITION_OWNERSHIP"
        " WHERE consumer_name = 'orders' ORDER BY partition_no");
    struct db_rows *rows;
    int count = 0;
    bool more, free = false;

    ok(p->g->f, db_query(p->g->f->db, &sql, NULL, 0, &rows, &p->g->f->diag));
    for (;; count++) {
        ok(p->g->f, db_next(rows, &more, &p->g->f->diag));
        if (!more)
            break;
        assert_true(count < PARTITIONS);
        assert_int_equal(db_get_int64(rows, 0), count);
        if (db_get_int64(rows, 1) < p->generation[count])
            fail_msg("the generation of partition %d went down", count);
        p->generation[count] = db_get_int64(rows, 1);
        free |= db_is_null(rows, 2);
    }
    db_rows_close(rows);
    assert_int_equal(count, PARTITIONS); /* what is let go of keeps its row */
    p->free += free;
}

/* Lines that were written and appear now were committed since the last look. */
static void see_ledger(struct play *p)
{
    struct db_sql sql = sql_of("SELECT n, p, g FROM ledger ORDER BY n");
    struct db_rows *rows;
    bool more;

    ok(p->g->f, db_query(p->g->f->db, &sql, NULL, 0, &rows, &p->g->f->diag));
    for (;;) {
        ok(p->g->f, db_next(rows, &more, &p->g->f->diag));
        if (!more)
            break;
        int64_t line = db_get_int64(rows, 0);
        int64_t partition = db_get_int64(rows, 1);
        int64_t generation = db_get_int64(rows, 2);

        assert_in_range(line, 1, LINES - 1);
        if (p->seen[line])
            continue;
        p->seen[line] = true;
        if (generation < p->committed[partition])
            fail_msg("partition %lld: a commit under generation %lld after one"
                     " under %lld",
                     (long long)partition, (long long)generation,
                     (long long)p->committed[partition]);
        p->committed[partition] = generation;
        p->commits++;
    }
    db_rows_close(rows);
}

static void see_owners(struct play *p)
{
    const struct actor *a = &p->actors[0], *b = &p->actors[1];

    for (int n = 0; a->passed && b->passed && n < PARTITIONS; n++)
        if (leases_hold(&a->i->leases[0], n) &&
            leases_hold(&b->i->leases[0], n))
            fail_msg("both may apply partition %d", n);
}

static void see(struct play *p)
{
    for (int n = 0; n < ACTORS; n++)
        if (p->actors[n].status != STATUS_OK)
            fail_msg("%s", p->actors[n].diag.message);
    see_owners(p);
    see_leases(p);
    see_ledger(p);
}

/* --- an order ------------------------------------------------------------- */

static void hold_back(struct play *p)
{
    char text[160];

    snprintf(text, sizeof(text),
             "SELECT * FROM PARTITION_INSTANCES WHERE instance_id = '%s'"
             " FOR UPDATE",
             p->actors[0].i->coordinator.id);
    ok(p->g->f, db_begin(p->holder, &p->g->f->diag));
    ok(p->g->f, try_run(p->g->f, p->holder, text));
}

/* On SQLite a transaction of the other keeps the row as it is. */
static void lapse_first(struct play *p)
{
    char text[160];
    enum status status;

    snprintf(text, sizeof(text),
             "UPDATE PARTITION_INSTANCES SET expires_at = last_heartbeat"
             " WHERE instance_id = '%s'",
             p->actors[0].i->coordinator.id);
    status = try_run(p->g->f, p->g->f->db, text);
    if (p->servers || status != STATUS_CONFLICT)
        ok(p->g->f, status);
}

static void grant(struct play *p, struct actor *a)
{
    enum step step = a->steps[a->granted];

    if (step == LAPSE)
        lapse_first(p);
    else if (step == SET_OUT && p->servers)
        hold_back(p);
    else if (step == GO_ON && p->servers)
        db_rollback(p->holder);
    __atomic_add_fetch(&a->granted, 1, __ATOMIC_RELEASE);
    if (!__atomic_load_n(&a->running, __ATOMIC_ACQUIRE)) {
        if (a->started)
            assert_int_equal(pthread_join(a->thread, NULL), 0);
        a->running = true;
        a->started = true;
        assert_int_equal(pthread_create(&a->thread, NULL, take_steps, a), 0);
    }
    until_still(p);
    see(p);
}

static void balance_alone(struct play *p, struct actor *a)
{
    ok(p->g->f, look_and_act(a));
}

/* The first holds everything; the second has arrived and holds nothing. */
static void set_up(struct play *p)
{
    begin(p->g->f);
    run(p->g->f, "DELETE FROM ledger");
    run(p->g->f, "DELETE FROM PARTITION_MEMBERS");
    run(p->g->f, "DELETE FROM PARTITION_INSTANCES");
    run(p->g->f, "UPDATE PARTITION_OWNERSHIP SET instance_id = NULL");
    commit(p->g->f);
    memset(p->seen, 0, sizeof(p->seen));
    p->written = 0;
    p->waits = false;
    for (int n = 0; n < ACTORS; n++) {
        struct actor *a = &p->actors[n];

        a->granted = a->done = 0;
        for (int c = 0; c < CONSUMERS; c++)
            leases_drop_all(&a->i->leases[c]);
        ok(p->g->f, coordinator_join(&a->i->coordinator, &p->g->f->diag));
        if (n == 0)
            balance_alone(p, a);
    }
    assert_int_equal(leases_of(&p->actors[0])->count, PARTITIONS);
}

static void finish(struct play *p)
{
    for (int n = 0; n < ACTORS; n++) {
        struct actor *a = &p->actors[n];

        assert_int_equal(pthread_join(a->thread, NULL), 0);
        a->started = false;
        assert_false(a->passed);
    }
    p->waited += p->waits;
}

/* Bit i says whose step is the i-th. */
static bool play_order(struct play *p, unsigned order, const int counts[ACTORS])
{
    int all = counts[0] + counts[1];

    if (__builtin_popcount(order) != counts[1])
        return false;
    set_up(p);
    for (int i = 0; i < all; i++)
        grant(p, &p->actors[order >> i & 1]);
    finish(p);
    return true;
}

static void open_actor(struct play *p, struct actor *a)
{
    struct db_options options = {.url = p->g->f->url,
                                 .busy_timeout = p->servers ? PATIENT : HASTY,
                                 .no_prepare = p->g->f->no_prepare};

    a->play = p;
    a->i = arrive(p->g);
    db_close(a->i->coordinator.db);
    ok(p->g->f, db_open(&options, &a->i->coordinator.db, &p->g->f->diag));
    checkpoints_init(&a->stored, PARTITIONS);
    if (!p->servers)
        ok(p->g->f,
           try_run(p->g->f, a->i->coordinator.db, "PRAGMA synchronous = OFF"));
    if (p->servers)
        a->session = number_from(p->g->f, a->i->coordinator.db,
                                 is_mariadb(p->g->f)
                                     ? "SELECT connection_id()"
                                     : "SELECT pg_backend_pid()");
}

static void open_play(struct play *p)
{
    const struct consumer_name name = {"projection", "orders"};
    struct fixture *f = p->g->f;

    p->servers = has_server(f);
    if (!p->servers)
        run(f, "PRAGMA synchronous = OFF");
    run(f, "CREATE TABLE ledger (n BIGINT PRIMARY KEY, p BIGINT, g BIGINT)");
    begin(f);
    ok(f, registry_subscribe(f->db, p->g->catalog, &name, SOURCE, PARTITIONS,
                             &p->g->ids, 1, &p->row, &f->diag));
    commit(f);
    p->holder = fixture_connect(f);
    for (int n = 0; n < ACTORS; n++)
        open_actor(p, &p->actors[n]);
}

static void close_play(struct play *p)
{
    db_close(p->holder);
    for (int n = 0; n < ACTORS; n++)
        checkpoints_free(&p->actors[n].stored);
}

static void play_all(struct play *p, const enum step *first, int nfirst,
                     const enum step *second, int nsecond, int orders)
{
    const int counts[ACTORS] = {nfirst, nsecond};
    int played = 0;

    open_play(p);
    p->actors[0].steps = first;
    p->actors[1].steps = second;
    for (unsigned order = 0; order < 1U << (nfirst + nsecond); order++)
        played += play_order(p, order, counts);
    close_play(p);
    assert_int_equal(played, orders);
}

/* --- the tests ------------------------------------------------------------ */

#define ON_SESSIONS(name) ON_SQLITE(name), ON_POSTGRES(name), ON_MARIADB(name)
#define COUNT(list)       ((int)(sizeof(list) / sizeof((list)[0])))

static void no_order_of_a_take_over_is_wrong(void **state)
{
    static const enum step first[] = {CHECK, WRITE, COMMIT, BALANCE};
    static const enum step second[] = {LAPSE, SET_OUT, GO_ON,
                                       CHECK, WRITE,   COMMIT};
    struct play p = {.g = *state};

    play_all(&p, first, COUNT(first), second, COUNT(second), 210);
    assert_true(p.waited > 0);
    assert_true(p.fenced > 0);
    assert_true(p.commits > 0);
}

static void no_order_of_a_hand_over_is_wrong(void **state)
{
    static const enum step first[] = {BALANCE, CHECK, WRITE, COMMIT};
    static const enum step second[] = {BALANCE, CHECK, WRITE, COMMIT, BALANCE};
    struct play p = {.g = *state};

    play_all(&p, first, COUNT(first), second, COUNT(second), 126);
    assert_true(p.free > 0);
    assert_true(p.commits > 0);
}

/* The instance alone does not tell: it may have lost a lease and got it back.
 */
static void a_lease_of_another_generation_is_lost(void **state)
{
    struct play p = {.g = *state};
    struct actor *a = &p.actors[0];

    open_play(&p);
    set_up(&p);
    leases_set(leases_of(a), 3, leases_of(a)->generation[3] + 1);
    ok(p.g->f, check(a));
    assert_false(a->passed);
    assert_int_equal(p.fenced, 1);
    close_play(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SESSIONS(a_lease_of_another_generation_is_lost),
        ON_SESSIONS(no_order_of_a_take_over_is_wrong),
        ON_SESSIONS(no_order_of_a_hand_over_is_wrong),
    };

    return cmocka_run_group_tests_name("lease_order", tests, NULL, NULL);
}
