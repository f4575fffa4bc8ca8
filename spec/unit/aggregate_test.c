/*
 * Aggregate: what a command meets whose stream, or whose result, another
 * writer has written while it decides. The aggregate's code is in C here, so
 * that it can be that other writer.
 */
#include "topic_fixture.h"

#include "model/aggregate.h"
#include "model/command_results.h"

#define ID "0190f6a0-0000-7000-8000-000000000001"

/* A counter of its events. */
struct counter {
    struct fixture *f;
    struct aggregates *aggregates;
    int64_t count;
    void (*meanwhile)(struct counter *c); /* while it decides */
};

static enum status initial(void *code, const struct handler_call *call,
                           size_t slot, struct failure *failure)
{
    struct counter *c = code;

    (void)call, (void)slot, (void)failure;
    c->count = 0;
    return STATUS_OK;
}

static enum status apply_event(void *code, const struct handler_call *call,
                               size_t slot, struct failure *failure)
{
    struct counter *c = code;

    (void)call, (void)slot, (void)failure;
    c->count++;
    return STATUS_OK;
}

static enum status count_one(void *code, const struct handler_call *call,
                             size_t slot, const struct handler_command *command,
                             struct arena *arena,
                             struct handler_decision *decision,
                             struct failure *failure)
{
    struct counter *c = code;
    void (*meanwhile)(struct counter *) = c->meanwhile;

    (void)call, (void)slot, (void)command, (void)failure;
    decision->events = arena_alloc_zero(arena, sizeof(*decision->events));
    decision->events[0].type = text_of("counted");
    decision->events[0].payload = text_of("{}");
    decision->count = 1;
    c->meanwhile = NULL; /* once */
    if (meanwhile != NULL)
        meanwhile(c);
    return STATUS_OK;
}

static const struct handler_ops OPS = {
    .state_initial = initial,
    .apply_event = apply_event,
    .command = count_one,
};

static const struct text COMMANDS[] = {{"count", 5}};

static const struct declaration DECLARATIONS[] = {
    {.kind = DECLARATION_AGGREGATE,
     .name = "spec.counter",
     .file = "x.lua",
     .commands = COMMANDS,
     .ncommands = 1},
    {.kind = DECLARATION_AGGREGATE,
     .name = OWN_TYPE,
     .file = "x.lua",
     .commands = COMMANDS,
     .ncommands = 1},
};

static const struct clock CLOCK = {.offset_us = 0};
static const struct log QUIET = {.out = NULL};

static void open_counter(struct fixture *f, struct counter *c)
{
    *c = (struct counter){.f = f};
    check_ok(f, aggregates_open(
                    &(struct aggregates_options){
                        .declarations = DECLARATIONS,
                        .count = 2,
                        .handler = {.ops = &OPS, .code = c},
                        .dialect = db_dialect(f->db),
                        .names = &f->names,
                        .catalog = f->catalog,
                        .store = f->store,
                        .ids = &f->ids,
                        .clock = &CLOCK,
                        .log = &QUIET,
                        .payload_limit = PAYLOAD_LIMIT,
                    },
                    &c->aggregates, &f->diag));
}

/* Runs one command in a transaction, which is committed when it went well. */
static enum status dispatch(struct counter *c, const char *aggregate,
                            const char *id, struct aggregate_outcome *outcome)
{
    struct fixture *f = c->f;
    struct aggregate_command command = {
        .aggregate = text_of(aggregate),
        .id = text_of("A-1"),
        .name = text_of("count"),
        .has_command_id = id != NULL,
    };
    struct failure failure;
    enum status status;

    if (id != NULL)
        assert_true(uuid_parse(text_of(id), &command.command_id));
    check_ok(f, db_begin(f->db, &f->diag));
    status = aggregate_dispatch(c->aggregates, f->db, &command, outcome,
                                &failure, &f->diag);
    if (status == STATUS_OK)
        check_ok(f, db_commit(f->db, NULL, &f->diag));
    else
        db_rollback(f->db);
    return status;
}

static void append_meanwhile(struct counter *c)
{
    const struct append_options options = {
        .ids = &c->f->ids, .now_us = NOW, .payload_limit = PAYLOAD_LIMIT};
    const struct append_event event = event_of("spec.counter", "A-1", "{}");
    struct append_result result;
    size_t bad;

    check_ok(c->f, append_events(c->f->store, c->f->db, &options, &event, 1,
                                 &result, &bad, &c->f->diag));
}

static void write_result_meanwhile(struct counter *c)
{
    struct command_result result = {
        .aggregate_type = text_of("spec.counter"),
        .aggregate_id = text_of("A-1"),
        .name = text_of("count"),
        .outcome = text_of("{\"rejected\":{\"reason\":\"first\"}}"),
    };
    struct arena arena = ARENA_EMPTY;

    assert_true(uuid_parse(text_of(ID), &result.id));
    check_ok(c->f, command_result_write(c->f->db, &c->f->names, &result, NOW,
                                        &arena, &c->f->diag));
    check_ok(c->f, db_flush(c->f->db, NULL, &c->f->diag));
    arena_free(&arena);
}

static void a_stream_that_went_on_meanwhile_is_a_conflict(void **state)
{
    struct aggregate_outcome outcome;
    struct fixture *f = *state;
    struct counter c;

    open_counter(f, &c);
    check_ok(f, dispatch(&c, "spec.counter", NULL, &outcome));
    c.meanwhile = append_meanwhile;
    assert_int_equal(dispatch(&c, "spec.counter", NULL, &outcome),
                     STATUS_CONFLICT);
    expect_message(f, "expected sequence number 0, but its last event has "
                      "sequence number 1");
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 1);
    check_ok(f, dispatch(&c, "spec.counter", NULL, &outcome));
    assert_int_equal(outcome.version, 1);
    assert_int_equal(c.count, 2);
    aggregates_close(c.aggregates);
}

static void a_stream_that_began_meanwhile_is_a_conflict(void **state)
{
    struct aggregate_outcome outcome;
    struct fixture *f = *state;
    struct counter c;

    open_counter(f, &c);
    c.meanwhile = append_meanwhile;
    assert_int_equal(dispatch(&c, "spec.counter", NULL, &outcome),
                     STATUS_CONFLICT);
    aggregates_close(c.aggregates);
}

static void another_stream_that_goes_on_is_none(void **state)
{
    struct aggregate_outcome outcome;
    struct fixture *f = *state;
    struct counter c;

    open_counter(f, &c);
    c.meanwhile = append_meanwhile;
    check_ok(f, dispatch(&c, OWN_TYPE, NULL, &outcome));
    assert_int_equal(outcome.version, 0);
    assert_int_equal(integer_of(f, "SELECT count(*) FROM " OWN_TABLE), 1);
    aggregates_close(c.aggregates);
}

static void a_command_that_was_done_meanwhile_is_a_conflict(void **state)
{
    struct aggregate_outcome outcome;
    struct fixture *f = *state;
    struct counter c;

    open_counter(f, &c);
    c.meanwhile = write_result_meanwhile;
    assert_int_equal(dispatch(&c, "spec.counter", ID, &outcome),
                     STATUS_CONFLICT);
    expect_message(f, "the same command");
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 0);
    check_ok(f, dispatch(&c, "spec.counter", ID, &outcome));
    assert_false(outcome.repeated);
    check_ok(f, dispatch(&c, "spec.counter", ID, &outcome));
    assert_true(outcome.repeated);
    assert_int_equal(outcome.nevents, 1);
    assert_text(outcome.events[0].type, "counted");
    aggregates_close(c.aggregates);
}

static void two_commands_of_a_transaction_follow_each_other(void **state)
{
    const struct aggregate_command command = {
        .aggregate = TEXT_LITERAL("spec.counter"),
        .id = TEXT_LITERAL("A-1"),
        .name = TEXT_LITERAL("count"),
    };
    struct aggregate_outcome outcome;
    struct fixture *f = *state;
    struct failure failure;
    struct counter c;

    open_counter(f, &c);
    check_ok(f, db_begin(f->db, &f->diag));
    for (int i = 0; i < 2; i++) {
        check_ok(f, aggregate_dispatch(c.aggregates, f->db, &command, &outcome,
                                       &failure, &f->diag));
        assert_int_equal(outcome.version, i);
        assert_int_equal(outcome.loaded, i);
    }
    check_ok(f, db_commit(f->db, NULL, &f->diag));
    assert_int_equal(integer_of(f, "SELECT count(*) FROM EVENT_STORE"), 2);
    aggregates_close(c.aggregates);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_that_went_on_meanwhile_is_a_conflict),
        TEST(a_stream_that_began_meanwhile_is_a_conflict),
        TEST(another_stream_that_goes_on_is_none),
        TEST(a_command_that_was_done_meanwhile_is_a_conflict),
        TEST(two_commands_of_a_transaction_follow_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
