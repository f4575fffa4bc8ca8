/*
 * Deadlines of sagas: what handlers set, move, cancel and clear in a batch is
 * one row per name in the end; what is due is read in its order and fires once;
 * on every database.
 */
#include "db_support.h"

#include "base/clock.h"
#include "base/memory.h"
#include "consumer/deadline.h"
#include "db/catalog.h"
#include "model/saga_deadline.h"
#include "schema/names.h"
#include "schema/schema.h"

#include <sys/syscall.h>
#include <time.h>

#define PARTITIONS 12
#define TYPE       "order"
#define BASE       INT64_C(1709200800000001)
#define SECOND     CLOCK_SECOND

/* This machine's wall clock, as the program under test sees it; the C library's
 * own names of the parameters are reserved. */
static time_t clock_step; /* seconds */

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int clock_gettime(clockid_t id, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, id, time);

    if (result == 0 && id == CLOCK_REALTIME)
        time->tv_sec += clock_step;
    return result;
}

/* What a test works with; made and freed by in_world. */
struct world {
    struct fixture *f;
    struct names names;
    struct catalog *catalog;
    struct uuid_source ids;
    struct clock clock;
    struct saga_deadlines *deadlines;
    struct leases leases;
    struct arena arena;
    struct deadline *rows; /* as read last */
    size_t count;
    bool whole;
};

static void open_world(struct world *w, struct fixture *f)
{
    struct schema_options schema = {.partitions = PARTITIONS, .create = true};

    *w = (struct world){.f = f};
    names_default(&w->names);
    schema.names = &w->names;
    ok(f,
       catalog_open(db_dialect(f->db), w->names.fill, &w->catalog, &f->diag));
    ok(f, schema_prepare(f->db, &schema, &f->diag));
    w->deadlines = saga_deadlines_new(&(struct saga_deadlines_options){
        .saga_type = TYPE,
        .db = f->db,
        .catalog = w->catalog,
        .names = &w->names,
        .ids = &w->ids,
        .clock = &w->clock,
        .payload_limit = 100,
    });
    leases_init(&w->leases, PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        leases_set(&w->leases, p, p == 11 ? LEASE_NONE : 1);
    saga_deadlines_batch_begin(w->deadlines);
}

static void close_world(struct world *w)
{
    saga_deadlines_free(w->deadlines);
    leases_free(&w->leases);
    arena_free(&w->arena);
    catalog_close(w->catalog);
    names_free(&w->names);
}

/* --- short ways ----------------------------------------------------------- */

static struct saga_deadline_of saga(const char *id, int partition)
{
    struct saga_deadline_of of = {.saga_id = text_of(id),
                                  .partition = partition};

    memset(of.instance.bytes, id[0], sizeof(of.instance.bytes));
    return of;
}

static void set_at(struct world *w, const char *id, const char *name,
                   int64_t at_us)
{
    const struct saga_deadline_of of = saga(id, 1);

    ok(w->f, saga_deadlines_set(
                 w->deadlines, &of,
                 &(struct saga_deadline_set){.name = text_of(name),
                                             .at_us = at_us,
                                             .payload = text_of("{\"n\":1}"),
                                             .metadata = text_of("{}")},
                 NULL, &w->f->diag));
}

static void cancel(struct world *w, const char *id, const char *name)
{
    const struct saga_deadline_of of = saga(id, 1);

    saga_deadlines_cancel(w->deadlines, &of, text_of(name));
}

static void clear(struct world *w, const char *id)
{
    const struct saga_deadline_of of = saga(id, 1);

    saga_deadlines_clear(w->deadlines, &of);
}

static enum status try_send(struct world *w)
{
    struct fixture *f = w->f;
    enum status status;

    begin(f);
    status = saga_deadlines_send(w->deadlines, f->db, &f->diag);
    if (status == STATUS_OK)
        status = db_commit(f->db, NULL, &f->diag);
    if (status != STATUS_OK)
        db_rollback(f->db);
    saga_deadlines_batch_begin(w->deadlines);
    return status;
}

static void send(struct world *w)
{
    ok(w->f, try_send(w));
}

static int64_t rows(struct world *w)
{
    return number(w->f, "SELECT count(*) FROM SAGA_DEADLINES");
}

/* Reads what is due at a time, at most `limit` of it. */
static void due(struct world *w, int64_t now_us, size_t limit)
{
    struct fixture *f = w->f;

    arena_reset(&w->arena);
    begin(f);
    ok(f,
       deadline_due(f->db, w->catalog, TYPE, &w->leases, now_us, limit, 1 << 20,
                    &w->arena, &w->rows, &w->count, &w->whole, &f->diag));
    db_rollback(f->db);
}

static void assert_row(const struct world *w, size_t row, const char *saga_id,
                       const char *name)
{
    assert_true(row < w->count);
    assert_true(text_equal(w->rows[row].saga_id, text_of(saga_id)));
    assert_true(text_equal(w->rows[row].name, text_of(name)));
}

static int64_t next(struct world *w)
{
    struct fixture *f = w->f;
    int64_t next_us;

    begin(f);
    ok(f,
       deadline_next(f->db, w->catalog, TYPE, &w->leases, &next_us, &f->diag));
    db_rollback(f->db);
    return next_us;
}

static void in_world(void **state, void (*test)(struct world *w))
{
    struct world w;

    open_world(&w, *state);
    test(&w);
    close_world(&w);
}

/* --- tests ---------------------------------------------------------------- */

static void a_name_stands_once(struct world *w)
{
    set_at(w, "A", "pay", BASE + 5 * SECOND);
    set_at(w, "A", "ship", BASE + 9 * SECOND);
    set_at(w, "B", "pay", BASE + 7 * SECOND);
    send(w);
    assert_int_equal(rows(w), 3);
    set_at(w, "A", "pay", BASE + 30 * SECOND);
    set_at(w, "A", "pay", BASE + 8 * SECOND); /* the last word counts */
    send(w);
    assert_int_equal(rows(w), 3);
    due(w, BASE + 60 * SECOND, 10);
    assert_int_equal(w->count, 3);
    assert_row(w, 0, "B", "pay");
    assert_row(w, 1, "A", "pay");
    assert_int_equal(w->rows[1].due_at, BASE + 8 * SECOND);
    assert_row(w, 2, "A", "ship");
}

static void a_row_says_what_it_was_set_with(struct world *w)
{
    const struct saga_deadline_of of = saga("A", 3);
    const struct deadline *row;

    set_at(w, "B", "pay", BASE);
    ok(w->f, saga_deadlines_set(w->deadlines, &of,
                                &(struct saga_deadline_set){
                                    .name = TEXT_LITERAL("empty"),
                                    .at_us = BASE + 1,
                                },
                                NULL, &w->f->diag));
    send(w);
    due(w, BASE + 1, 10);
    assert_int_equal(w->count, 2);
    assert_true(w->whole);
    row = &w->rows[0];
    assert_true(text_equal(row->message.payload, TEXT_LITERAL("{\"n\":1}")));
    assert_true(text_equal(row->message.metadata, TEXT_LITERAL("{}")));
    assert_true(uuid_equal(&row->message.id, &row->id));
    assert_int_equal(row->message.position, 0);
    assert_true(text_equal(row->message.type, TEXT_LITERAL("pay")));
    row = &w->rows[1];
    assert_true(uuid_equal(&row->instance, &of.instance));
    assert_int_equal(row->partition, 3);
    assert_int_equal(row->due_at, BASE + 1);
    assert_int_equal(row->attempts, 0);
    assert_null(row->reason.data);
    assert_null(row->message.metadata.data);
    assert_true(text_equal(row->message.payload, TEXT_LITERAL("null")));
}

static void cancelled_and_cleared_ones_go(struct world *w)
{
    set_at(w, "A", "pay", BASE);
    set_at(w, "A", "ship", BASE);
    set_at(w, "B", "pay", BASE);
    set_at(w, "B", "ship", BASE);
    set_at(w, "C", "pay", BASE);
    send(w);
    cancel(w, "A", "pay");
    cancel(w, "C", "nothing");
    clear(w, "B");
    send(w);
    due(w, BASE, 10);
    assert_int_equal(w->count, 2);
    assert_row(w, 0, "A", "ship");
    assert_row(w, 1, "C", "pay");
}

static void the_order_within_a_batch_counts(struct world *w)
{
    set_at(w, "A", "old", BASE);
    send(w);
    set_at(w, "A", "before", BASE);
    clear(w, "A");
    set_at(w, "A", "after", BASE);
    set_at(w, "B", "pay", BASE);
    cancel(w, "B", "pay");
    cancel(w, "C", "pay");
    set_at(w, "C", "pay", BASE);
    send(w);
    due(w, BASE, 10);
    assert_int_equal(w->count, 2);
    assert_row(w, 0, "A", "after");
    assert_row(w, 1, "C", "pay");
}

static void an_undone_call_has_set_nothing(struct world *w)
{
    saga_deadlines_call_begin(w->deadlines);
    set_at(w, "A", "pay", BASE);
    saga_deadlines_call_begin(w->deadlines);
    set_at(w, "A", "pay", BASE + SECOND);
    clear(w, "A");
    saga_deadlines_call_undo(w->deadlines);
    send(w);
    due(w, BASE, 10);
    assert_int_equal(w->count, 1);
    assert_row(w, 0, "A", "pay");
    assert_int_equal(w->rows[0].due_at, BASE);
}

static void a_deadline_fires_once(struct world *w)
{
    struct uuid id;

    set_at(w, "A", "pay", BASE);
    send(w);
    due(w, BASE, 10);
    id = w->rows[0].id;
    /* its handler sets it again: that is another one */
    saga_deadlines_fired(w->deadlines, &id);
    set_at(w, "A", "pay", BASE + SECOND);
    send(w);
    due(w, BASE + SECOND, 10);
    assert_int_equal(w->count, 1);
    assert_false(uuid_equal(&w->rows[0].id, &id));
    saga_deadlines_fired(w->deadlines, &id);
    assert_int_equal(try_send(w), STATUS_CONFLICT);
    assert_int_equal(rows(w), 1);
}

/* Read to be fired, and moved before it is: by an operator, say. */
static void a_moved_deadline_does_not_fire_as_it_was(struct world *w)
{
    struct uuid id;

    set_at(w, "A", "pay", BASE);
    send(w);
    due(w, BASE, 10);
    id = w->rows[0].id;
    set_at(w, "A", "pay", BASE + 9 * SECOND);
    send(w);
    saga_deadlines_fired(w->deadlines, &id);
    set_at(w, "A", "other", BASE);
    assert_int_equal(try_send(w), STATUS_CONFLICT);
    due(w, BASE + 9 * SECOND, 10);
    assert_int_equal(w->count, 1);
    assert_row(w, 0, "A", "pay");
}

static void only_what_is_due_in_held_partitions_is_read(struct world *w)
{
    const struct saga_deadline_of foreign = saga("Z", 11);

    assert_int_equal(next(w), INT64_MAX);
    ok(w->f, saga_deadlines_set(w->deadlines, &foreign,
                                &(struct saga_deadline_set){
                                    .name = TEXT_LITERAL("pay"), .at_us = BASE},
                                NULL, &w->f->diag));
    set_at(w, "A", "pay", BASE + 1);
    set_at(w, "B", "pay", BASE + 2);
    set_at(w, "C", "pay", BASE + 3);
    send(w);
    assert_int_equal(next(w), BASE + 1);
    due(w, BASE, 10);
    assert_int_equal(w->count, 0);
    assert_true(w->whole);
    due(w, BASE + 2, 10);
    assert_int_equal(w->count, 2);
    assert_row(w, 0, "A", "pay");
    assert_row(w, 1, "B", "pay");
    due(w, BASE + 3, 2);
    assert_int_equal(w->count, 2);
    assert_false(w->whole);
}

static void a_failed_one_waits_and_a_dead_one_stays(struct world *w)
{
    struct fixture *f = w->f;
    struct deadline_failed failed[2];
    struct failure failure;

    set_at(w, "A", "pay", BASE);
    set_at(w, "B", "pay", BASE + 1);
    send(w);
    due(w, BASE + 1, 10);
    assert_int_equal(w->count, 2);
    failure_set(&failure, false, "error", "boom");
    failed[0] = (struct deadline_failed){
        .deadline = &w->rows[0],
        .status = DEADLINE_FAILED,
        .attempts = 1,
        .next_at = BASE + 5 * SECOND,
        .failure = &failure,
    };
    failed[1] = failed[0];
    failed[1].deadline = &w->rows[1];
    failed[1].status = DEADLINE_DEAD_LETTER;
    begin(f);
    ok(f, deadline_fail(f->db, &w->names, failed, 2, &w->arena, &f->diag));
    commit(f);
    assert_int_equal(next(w), BASE + 5 * SECOND);
    due(w, BASE + 4 * SECOND, 10);
    assert_int_equal(w->count, 0);
    due(w, BASE + 9 * SECOND, 10);
    assert_int_equal(w->count, 1);
    assert_row(w, 0, "A", "pay");
    assert_int_equal(w->rows[0].attempts, 1);
    assert_int_equal(w->rows[0].due_at, BASE);
    assert_true(text_equal(w->rows[0].reason, TEXT_LITERAL("error: boom")));
    assert_int_equal(number(f, "SELECT count(*) FROM SAGA_DEADLINES WHERE "
                               "status = 'DEAD_LETTER' AND saga_id = 'B'"),
                     1);
    /* setting it again is a fresh one */
    set_at(w, "B", "pay", BASE);
    send(w);
    due(w, BASE, 10);
    assert_row(w, 0, "B", "pay");
    assert_int_equal(w->rows[0].attempts, 0);
    assert_null(w->rows[0].reason.data);
}

static void a_failure_of_one_that_is_gone_is_a_conflict(struct world *w)
{
    struct fixture *f = w->f;
    struct deadline_failed failed = {.status = DEADLINE_FAILED, .attempts = 1};

    set_at(w, "A", "pay", BASE);
    send(w);
    due(w, BASE, 10);
    failed.deadline = &w->rows[0];
    run(f, "DELETE FROM SAGA_DEADLINES");
    begin(f);
    ok(f, deadline_fail(f->db, &w->names, &failed, 1, &w->arena, &f->diag));
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_CONFLICT);
    db_rollback(f->db);
}

/* The database's clock, moved by the offset; not this machine's. */
static void a_duration_counts_from_the_databases_clock(struct world *w)
{
    struct fixture *f = w->f;
    const struct saga_deadline_of of = saga("A", 1);
    int64_t before, after, due_at;

    w->clock.offset_us = 3600 * SECOND;
    begin(f);
    ok(f, db_now(f->db, &before, &f->diag));
    ok(f, saga_deadlines_set(w->deadlines, &of,
                             &(struct saga_deadline_set){
                                 .name = TEXT_LITERAL("pay"),
                                 .relative = true,
                                 .at_us = 60 * SECOND,
                             },
                             &due_at, &f->diag));
    ok(f, db_now(f->db, &after, &f->diag));
    db_rollback(f->db);
    assert_true(due_at >= before + 3660 * SECOND - 1000);
    assert_true(due_at <= after + 3660 * SECOND + 1000);
}

/* Of a server's time this machine's clock is no part. */
static void a_step_of_this_machines_clock_moves_none(struct world *w)
{
    struct fixture *f = w->f;
    const struct saga_deadline_of of = saga("A", 1);
    const struct saga_deadline_set set = {
        .name = TEXT_LITERAL("pay"), .relative = true, .at_us = 60 * SECOND};
    int64_t before, after, wall, now;

    begin(f);
    ok(f, saga_deadlines_set(w->deadlines, &of, &set, &before, &f->diag));
    clock_step = 3600;
    wall = clock_now(NULL);
    ok(f, saga_deadlines_set(w->deadlines, &of, &set, &after, &f->diag));
    ok(f, deadline_clock(f->db, &w->clock, &now, &f->diag));
    clock_step = 0;
    db_rollback(f->db);
    assert_true(wall - now > 3500 * SECOND); /* it was stepped */
    assert_true(after - before >= 0 && after - before < 60 * SECOND);
    assert_true(now < before);
}

static void the_earliest_is_told_once(struct world *w)
{
    assert_int_equal(saga_deadlines_earliest(w->deadlines), INT64_MAX);
    set_at(w, "A", "pay", BASE + 2);
    set_at(w, "B", "pay", BASE + 1);
    set_at(w, "C", "pay", BASE);
    cancel(w, "C", "pay");
    send(w);
    assert_int_equal(saga_deadlines_earliest(w->deadlines), BASE + 1);
    assert_int_equal(saga_deadlines_earliest(w->deadlines), INT64_MAX);
}

static void what_no_row_can_hold_is_refused(struct world *w)
{
    struct fixture *f = w->f;
    const struct saga_deadline_of of = saga("A", 1);
    struct saga_deadline_set set = {.name = TEXT_LITERAL("")};
    char name[256 * 2];

    assert_int_equal(
        saga_deadlines_set(w->deadlines, &of, &set, NULL, &f->diag),
        STATUS_INVALID);
    assert_says(f, "1 to 255 characters, not 0");
    for (size_t i = 0; i < sizeof(name); i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    set.name = (struct text){name, sizeof(name)};
    assert_int_equal(
        saga_deadlines_set(w->deadlines, &of, &set, NULL, &f->diag),
        STATUS_INVALID);
    assert_says(f, "not 256");
    set.name = (struct text){name, sizeof(name) - 2};
    set.relative = true;
    set.at_us = INT64_MAX;
    assert_int_equal(
        saga_deadlines_set(w->deadlines, &of, &set, NULL, &f->diag),
        STATUS_INVALID);
    assert_says(f, "outside of the years 0 to 9999");
    set.relative = false;
    set.at_us = INT64_MIN;
    assert_int_equal(
        saga_deadlines_set(w->deadlines, &of, &set, NULL, &f->diag),
        STATUS_INVALID);
    set.at_us = BASE;
    set.payload = (struct text){name, 101};
    assert_int_equal(
        saga_deadlines_set(w->deadlines, &of, &set, NULL, &f->diag),
        STATUS_INVALID);
    assert_says(f, "limits.payload is 100");
    set.payload = TEXT_NONE;
    ok(f, saga_deadlines_set(w->deadlines, &of, &set, NULL, &f->diag));
    send(w);
    assert_int_equal(rows(w), 1);
}

static void sagas_of_another_type_are_left_alone(struct world *w)
{
    struct fixture *f = w->f;
    const struct text ids[] = {TEXT_LITERAL("A"), TEXT_LITERAL("B")};

    set_at(w, "A", "pay", BASE);
    send(w);
    run(f, "UPDATE SAGA_DEADLINES SET saga_type = 'other'");
    set_at(w, "A", "pay", BASE);
    set_at(w, "B", "pay", BASE);
    set_at(w, "C", "pay", BASE);
    send(w);
    due(w, BASE, 10);
    assert_int_equal(w->count, 3);
    begin(f);
    ok(f, saga_deadlines_delete(f->db, w->catalog, TYPE, ids, 2, &f->diag));
    commit(f);
    due(w, BASE, 10);
    assert_int_equal(w->count, 1);
    assert_int_equal(rows(w), 2);
}

/* What the database would do for a statement, in its own words. */
static void explain(struct world *w, enum sql_statement statement,
                    const struct db_value *params, size_t nparams,
                    struct buffer *plan)
{
    struct fixture *f = w->f;
    struct buffer text = BUFFER_EMPTY;
    struct db_sql sql;
    struct db_rows *found;
    bool more;

    buffer_append_string(&text,
                         has_server(f) ? "EXPLAIN " : "EXPLAIN QUERY PLAN ");
    buffer_append_text(&text, catalog_sql(w->catalog, statement)->text);
    sql = db_sql_make(buffer_text(&text), DB_HOST);
    begin(f);
    ok(f, db_query(f->db, &sql, params, nparams, &found, &f->diag));
    for (ok(f, db_next(found, &more, &f->diag)); more;
         ok(f, db_next(found, &more, &f->diag)))
        for (size_t i = 0; i < db_columns(found); i++)
            if (db_column_type(found, i) == DB_TEXT) {
                buffer_append_text(plan, db_get_text(found, i));
                buffer_append_char(plan, '\n');
            }
    db_rows_close(found);
    db_rollback(f->db);
    buffer_free(&text);
}

/* Names of indexes are lower case on one of them. */
static void assert_plan_of(const struct buffer *plan)
{
    static const char *const sorts[] = {"TEMP B-TREE", "filesort", "Sort"};

    if (strcasestr(plan->data, "idx_SAGA_DEADLINES_next") == NULL)
        fail_msg("another index: %s", plan->data);
    for (size_t i = 0; i < sizeof(sorts) / sizeof(*sorts); i++)
        if (strstr(plan->data, sorts[i]) != NULL)
            fail_msg("sorted: %s", plan->data);
}

/* However many there are, a page reads a page's rows, in their order. */
static void what_is_due_comes_from_one_index(struct world *w)
{
    struct fixture *f = w->f;
    const struct db_value parts = db_integers(w->leases.mine, w->leases.count);
    const struct db_value due_params[] = {db_string(TYPE),
                                          db_timestamp(BASE + 3000 * SECOND),
                                          parts, db_integer(50)};
    const struct db_value next_params[] = {db_string(TYPE), parts};
    const struct text type = TEXT_LITERAL(TYPE);
    const struct db_value first_params[] = {db_texts(&type, 1)};
    struct buffer plan = BUFFER_EMPTY;

    for (int i = 0; i < 3000; i++) {
        char id[16];

        snprintf(id, sizeof(id), "O-%d", i);
        set_at(w, id, "pay", BASE + i * SECOND);
    }
    send(w);
    if (strcmp(db_dialect(f->db), "postgres") == 0)
        run(f, "ANALYZE SAGA_DEADLINES");
    explain(w, SQL_DEADLINE_DUE, due_params, 4, &plan);
    assert_plan_of(&plan);
    buffer_clear(&plan);
    explain(w, SQL_DEADLINE_NEXT, next_params, 2, &plan);
    assert_plan_of(&plan);
    buffer_clear(&plan);
    explain(w, SQL_DEADLINE_FIRSTS, first_params, 1, &plan);
    assert_plan_of(&plan);
    buffer_free(&plan);
}

/* Whatever the statistics say: while a table looks empty, reading all of it is
 * the cheapest way to a row, and meets the rows of others. */
static void what_another_host_has_in_hand_holds_nothing_up(struct world *w)
{
    struct fixture *f = w->f;
    struct db *other = fixture_connect(f);
    struct uuid a, b;

    set_at(w, "A", "pay", BASE);
    set_at(w, "B", "pay", BASE + 1);
    send(w);
    due(w, BASE + 1, 10);
    a = w->rows[0].id;
    b = w->rows[1].id;
    begin(f);
    saga_deadlines_fired(w->deadlines, &a);
    ok(f, saga_deadlines_send(w->deadlines, f->db, &f->diag));
    ok(f, db_flush(f->db, NULL, &f->diag));
    for (int i = 0; i < 3; i++) {
        saga_deadlines_batch_begin(w->deadlines);
        if (i == 0)
            cancel(w, "B", "other");
        else if (i == 1)
            clear(w, "C");
        else
            saga_deadlines_fired(w->deadlines, &b);
        ok(f, db_begin(other, &f->diag));
        ok(f, saga_deadlines_send(w->deadlines, other, &f->diag));
        ok(f, db_commit(other, NULL, &f->diag));
    }
    db_close(other);
    commit(f);
    assert_int_equal(rows(w), 0);
}

#define TESTS(X)                                                               \
    X(a_name_stands_once)                                                      \
    X(a_row_says_what_it_was_set_with)                                         \
    X(cancelled_and_cleared_ones_go)                                           \
    X(the_order_within_a_batch_counts)                                         \
    X(an_undone_call_has_set_nothing)                                          \
    X(a_deadline_fires_once)                                                   \
    X(a_moved_deadline_does_not_fire_as_it_was)                                \
    X(only_what_is_due_in_held_partitions_is_read)                             \
    X(a_failed_one_waits_and_a_dead_one_stays)                                 \
    X(a_failure_of_one_that_is_gone_is_a_conflict)                             \
    X(a_duration_counts_from_the_databases_clock)                              \
    X(the_earliest_is_told_once)                                               \
    X(what_no_row_can_hold_is_refused)                                         \
    X(sagas_of_another_type_are_left_alone)                                    \
    X(what_is_due_comes_from_one_index)

#define SERVER_TESTS(X)                                                        \
    X(a_step_of_this_machines_clock_moves_none)                                \
    X(what_another_host_has_in_hand_holds_nothing_up)

#define IN_WORLD(test)                                                         \
    static void test##_here(void **state)                                      \
    {                                                                          \
        in_world(state, test);                                                 \
    }
TESTS(IN_WORLD)
SERVER_TESTS(IN_WORLD)

#define EVERYWHERE(test)                                                       \
    on_sqlite(test##_here), on_postgres(test##_here), on_mariadb(test##_here),

#define ON_SERVERS(test) on_postgres(test##_here), on_mariadb(test##_here),

int main(void)
{
    const struct CMUnitTest tests[] = {TESTS(EVERYWHERE)
                                           SERVER_TESTS(ON_SERVERS)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
