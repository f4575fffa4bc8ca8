/*
 * The high-water mark under load, and over every order of the steps of two
 * writers and the detector: it never passes a position that becomes visible
 * later.
 */
#include "mark_support.h"

/* --- under load ---------------------------------------------------------- */

enum { LOOKS = 1000, END_LOOKS = 60000, WRITING = 2 };

struct writing {
    struct world *w;
    struct db *db;
    struct diag diag;
    unsigned seed;
    int *stop;
    bool failed;
};

/* One append: draws, writes the position down, ends either way. */
static bool write_once(struct writing *t)
{
    struct db_value count = db_integer(1);
    struct db_sql insert = sql_of("INSERT INTO ledger VALUES (?1)");
    struct db_value position;
    int64_t drawn;
    bool found;

    if (db_begin(t->db, &t->diag) != STATUS_OK ||
        db_query_int64(t->db, catalog_sql(t->w->catalog, SQL_APPEND_POSITIONS),
                       &count, 1, &drawn, &found, &t->diag) != STATUS_OK)
        return false;
    position = db_integer(drawn);
    if (db_queue(t->db, &insert, &position, 1, 1, 0, &t->diag) != STATUS_OK)
        return false;
    if (rand_r(&t->seed) % 4 == 0) {
        db_rollback(t->db);
        return true;
    }
    return db_commit(t->db, NULL, &t->diag) == STATUS_OK;
}

static void *write_on(void *arg)
{
    struct writing *t = arg;

    while (!__atomic_load_n(t->stop, __ATOMIC_RELAXED) && !t->failed)
        t->failed = !write_once(t);
    return NULL;
}

static int64_t count_up_to(struct world *w, int64_t position)
{
    struct db_sql sql = sql_of("SELECT count(*) FROM ledger WHERE p <= ?1");
    struct db_value param = db_integer(position);
    int64_t count = 0;
    bool found;

    ok(&w->f,
       db_query_int64(w->f.db, &sql, &param, 1, &count, &found, &w->f.diag));
    return count;
}

/*
 * What stands up to the mark when it is there stands there for good. In
 * particular the detector reads the end before it takes its id: the other way
 * round, a position drawn in between counts, and its id says nothing about it.
 */
static void nothing_appears_up_to_a_mark_that_was_seen(void **state)
{
    struct world *w = *state;
    static int64_t marks[LOOKS], counts[LOOKS];
    struct writing writers[WRITING];
    pthread_t threads[WRITING];
    int64_t moves = 0;
    int stop = 0;

    run(&w->f, "CREATE TABLE ledger (p BIGINT PRIMARY KEY)");
    for (unsigned i = 0; i < WRITING; i++) {
        writers[i] = (struct writing){
            .w = w, .db = fixture_connect(&w->f), .seed = i + 1, .stop = &stop};
        assert_int_equal(
            pthread_create(&threads[i], NULL, write_on, &writers[i]), 0);
    }
    for (int i = 0; i < LOOKS; i++) {
        marks[i] = detect(w);
        counts[i] = count_up_to(w, marks[i]);
        moves += i > 0 && marks[i] > marks[i - 1];
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WRITING; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (writers[i].failed)
            fail_msg("%s", writers[i].diag.message);
        db_close(writers[i].db);
    }
    assert_true(moves > LOOKS / 20); /* the load was real */
    for (int i = 0; i < LOOKS; i++) {
        if (count_up_to(w, marks[i]) != counts[i])
            fail_msg("look %d: a row up to the mark %lld appeared later", i,
                     (long long)marks[i]);
    }
}

/*
 * While nextval writes its log, the sequence's page holds for a moment
 * positions that nobody has drawn. An end that was read there would let the
 * mark pass what is handed out later.
 */
static void *draw_on(void *arg)
{
    struct writing *t = arg;
    struct db_sql draw = sql_of(
        "SELECT count(nextval('event_store_global_position'))"
        "  FROM generate_series(1, 20000)");
    int64_t count;
    bool found;

    while (!__atomic_load_n(t->stop, __ATOMIC_RELAXED) && !t->failed)
        t->failed = db_query_int64(t->db, &draw, NULL, 0, &count, &found,
                                   &t->diag) != STATUS_OK;
    return NULL;
}

/* The product's own statement, so often and so close together that some looks
 * fall into a write of the log; it raises when the end went back. */
static void looks_in_the_server(struct world *w, struct buffer *script)
{
    struct text sql = catalog_sql(w->catalog, SQL_MARK_READ)->text;

    buffer_append_string(
        script, "DO $do$ DECLARE e bigint; highest bigint := 0; "
                "a bigint; b bigint; held boolean; BEGIN FOR i IN 1..");
    buffer_printf(script, "%d LOOP EXECUTE $q$", END_LOOKS);
    for (size_t i = 0; i < sql.len; i++)
        buffer_append_char(script, sql.data[i] == '?' ? '$' : sql.data[i]);
    buffer_append_string(
        script, "$q$ INTO a, b, e, held USING 'event-store', NULL::text; "
                "IF e < highest THEN RAISE EXCEPTION 'the end went back from "
                "% to %', highest, e; END IF; highest := e; END LOOP; "
                "IF highest < 1000 THEN RAISE EXCEPTION 'nobody drew'; "
                "END IF; END $do$");
}

static void the_end_never_goes_back(void **state)
{
    struct world *w = *state;
    struct writing writers[WRITING];
    pthread_t threads[WRITING];
    struct buffer script = BUFFER_EMPTY;
    int stop = 0;

    for (unsigned i = 0; i < WRITING; i++) {
        writers[i] = (struct writing){
            .w = w, .db = fixture_connect(&w->f), .stop = &stop};
        assert_int_equal(
            pthread_create(&threads[i], NULL, draw_on, &writers[i]), 0);
    }
    looks_in_the_server(w, &script);
    run(&w->f, script.data);
    buffer_free(&script);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WRITING; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (writers[i].failed)
            fail_msg("%s", writers[i].diag.message);
        db_close(writers[i].db);
    }
}

/* --- every order --------------------------------------------------------- */

/* Steps of two writers: draw, draw again, end. */
enum { STEPS = 3, WRITERS = 2 };

struct play {
    struct world *w;
    struct db *writer[WRITERS];
    int64_t lowest[WRITERS]; /* first position drawn and not ended; 0: none */
    int next[WRITERS];
    unsigned commits; /* which of them commit */
    int64_t last;
};

static void check_mark(struct play *p)
{
    int64_t mark = detect(p->w);

    for (int i = 0; i < WRITERS; i++) {
        if (p->lowest[i] != 0 && mark >= p->lowest[i])
            fail_msg("the mark %lld passed the open position %lld of writer %d",
                     (long long)mark, (long long)p->lowest[i], i);
    }
    if (p->lowest[0] == 0 && p->lowest[1] == 0)
        assert_int_equal(mark, p->last);
}

static void do_step(struct play *p, int writer)
{
    int step = p->next[writer]++;

    if (step == STEPS - 1) {
        end(p->w, p->writer[writer], (p->commits >> writer & 1) != 0);
        p->lowest[writer] = 0;
    } else {
        p->last = draw(p->w, p->writer[writer], 2);
        if (step == 0)
            p->lowest[writer] = p->last;
        p->last++;
    }
}

/* Plays one order: bit i says which writer takes step i, and `looks` whether
 * the detector runs after it. */
static void play(struct play *p, unsigned order, unsigned looks)
{
    p->next[0] = p->next[1] = 0;
    for (int i = 0; i < STEPS * WRITERS; i++) {
        do_step(p, (int)(order >> i & 1));
        if ((looks >> i & 1) != 0)
            check_mark(p);
    }
    check_mark(p);
}

static void no_order_of_two_writers_and_the_detector_is_wrong(void **state)
{
    struct world *w = *state;
    struct play p = {.w = w};
    int played = 0;

    for (int i = 0; i < WRITERS; i++)
        p.writer[i] = fixture_connect(&w->f);
    for (unsigned order = 0; order < 1U << (STEPS * WRITERS); order++) {
        if (__builtin_popcount(order) != STEPS)
            continue;
        for (p.commits = 0; p.commits < 4; p.commits++) {
            play(&p, order, 0x3f);
            play(&p, order, 0x15);
            play(&p, order, 0x2a);
            played++;
        }
    }
    assert_int_equal(played, 20 * 4);
    for (int i = 0; i < WRITERS; i++)
        db_close(p.writer[i]);
}

/* --- every order, with a detector that stands halfway -------------------- */

/*
 * Who takes a step: a writer draws, then ends; the detector sets out and stands
 * still, then goes on. With the row locked it stands behind the reading of the
 * end, with the table locked in front of it.
 */
enum { DETECTOR = WRITERS, ACTORS = WRITERS + 1, HALVES = 2 };

struct halves {
    struct world *w;
    struct db *writer[WRITERS];
    struct db *holder; /* of what the detector needs */
    const char *lock;
    struct thread detector;
    pthread_t thread;
    int64_t open[WRITERS]; /* the position that was drawn; 0: none */
    int64_t last;
    unsigned commits;
    int waited; /* the detector was met halfway */
};

static void *detect_and_tell(void *arg)
{
    struct thread *t = arg;

    (void)detect_aside(t);
    __atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static void set_out(struct halves *h)
{
    ok(&h->w->f, db_begin(h->holder, &h->w->f.diag));
    ok(&h->w->f, try_run(&h->w->f, h->holder, h->lock));
    h->detector.done = false;
    h->detector.detector.asked_at = 0;
    assert_int_equal(
        pthread_create(&h->thread, NULL, detect_and_tell, &h->detector), 0);
    while (!__atomic_load_n(&h->detector.done, __ATOMIC_ACQUIRE)) {
        if (is_waiting(h->w)) {
            h->waited++;
            break;
        }
    }
}

static void go_on(struct halves *h)
{
    db_rollback(h->holder);
    assert_int_equal(pthread_join(h->thread, NULL), 0);
    /* on a busy machine it may wait too long for a row: it has said nothing */
    if (h->detector.status == STATUS_CONFLICT)
        return;
    if (h->detector.status != STATUS_OK)
        fail_msg("%s", h->detector.diag.message);
    for (int i = 0; i < WRITERS; i++) {
        if (h->open[i] != 0 && h->detector.mark.mark >= h->open[i])
            fail_msg("the mark %lld passed the open position %lld of writer %d",
                     (long long)h->detector.mark.mark, (long long)h->open[i],
                     i);
    }
}

static void take_half(struct halves *h, int actor, int step)
{
    if (actor == DETECTOR && step == 0) {
        set_out(h);
    } else if (actor == DETECTOR) {
        go_on(h);
    } else if (step == 0) {
        h->open[actor] = h->last = draw(h->w, h->writer[actor], 1);
    } else {
        end(h->w, h->writer[actor], (h->commits >> actor & 1) != 0);
        h->open[actor] = 0;
    }
}

/* Plays one order: two bits say who takes each step. False when it is none. */
static bool play_halves(struct halves *h, unsigned order)
{
    int next[ACTORS] = {0};

    for (int i = 0; i < HALVES * ACTORS; i++) {
        unsigned actor = order >> (2 * i) & 3;

        if (actor >= ACTORS || ++next[actor] > HALVES)
            return false;
    }
    memset(next, 0, sizeof(next));
    for (int i = 0; i < HALVES * ACTORS; i++) {
        int actor = (int)(order >> (2 * i) & 3);

        take_half(h, actor, next[actor]++);
    }
    assert_int_equal(detect(h->w), h->last);
    return true;
}

static void no_order_with_a_detector_halfway_is_wrong(void **state)
{
    static const char *const locks[] = {
        "SELECT * FROM high_water_mark_store FOR UPDATE",
        "LOCK TABLE high_water_mark_store IN ACCESS EXCLUSIVE MODE"};
    struct world *w = *state;
    struct halves h = {.w = w, .holder = fixture_connect(&w->f)};
    int played = 0;

    h.detector = (struct thread){.w = w, .db = fixture_connect(&w->f)};
    for (int i = 0; i < WRITERS; i++)
        h.writer[i] = fixture_connect(&w->f);
    for (int i = 0; i < 2 * 4; i++) {
        h.lock = locks[i / 4];
        h.commits = (unsigned)i % 4;
        for (unsigned order = 0; order < 1U << (2 * HALVES * ACTORS); order++)
            played += play_halves(&h, order);
    }
    assert_int_equal(played, 2 * 4 * 90);
    assert_true(h.waited > played / 2);
    for (int i = 0; i < WRITERS; i++)
        db_close(h.writer[i]);
    db_close(h.detector.db);
    db_close(h.holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_appears_up_to_a_mark_that_was_seen),
        TEST(the_end_never_goes_back),
        TEST(no_order_of_two_writers_and_the_detector_is_wrong),
        TEST(no_order_with_a_detector_halfway_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
