/* script/declare.c and lua/moontide/declare_saga.lua: sagas. */
#include "script_fixture.h"

/* What is said of a saga "s" with the given members. */
static void expect_refused(const char *members, const char *wanted)
{
    fixture_expect_refused("local moontide = require 'moontide'\n"
                           "local id = moontide.by 'id'\n"
                           "local function run() end\n"
                           "return moontide.saga 's' { ",
                           members, " }\n", "4: saga \"s\": ", wanted);
}

static void every_wrong_member_is_named(void **state)
{
    static const struct {
        const char *members, *wanted;
    } cases[] = {
        {"on = { ['a.B'] = run }, starts = { 'a.B' }",
         "id is missing: which saga an event is for, as in id = moontide.by "
         "\"order_id\""},
        {"key = id, on = { ['a.B'] = run }, starts = { 'a.B' }",
         "key is no key of a saga; its id is: id = moontide.by \"order_id\""},
        {"id = 'id', on = { ['a.B'] = run }, starts = { 'a.B' }",
         "id is \"id\"; it must be a function"},
        {"id = id, on = { ['a.B'] = run }",
         "starts is missing: the types that begin a saga, as in starts = { "
         "\"order.Placed\" }"},
        {"id = id, on = { ['a.B'] = run }, starts = {}",
         "starts is missing: the types that begin a saga, as in starts = { "
         "\"order.Placed\" }"},
        {"id = id, on = { ['a.B'] = run }, starts = 'a.B'",
         "starts is \"a.B\"; it must be a list of strings"},
        {"id = id, on = { ['a.Begun'] = run }, starts = { 'a.Begum' }",
         "starts has \"a.Begum\", which `on` has no handler for; did you mean "
         "\"a.Begun\"?"},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, unknown = "
         "'deadletter'",
         "unknown is \"deadletter\" (did you mean \"dead_letter\"?); what "
         "becomes of an event that finds no saga is one of ignore, "
         "dead_letter, error"},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, unknown = 1",
         "unknown is a number; what becomes of an event that finds no saga is "
         "one of ignore, dead_letter, error"},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, deadlines = 1",
         "deadlines is a number; it must be a table of names and functions"},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, deadlines = { "
         "[''] = run }",
         "deadlines[]: a deadline's name is UTF-8 text of 1 to 255 "
         "characters"},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, deadlines = { "
         "late = 1 }",
         "deadlines[\"late\"] is a number; the handler of a deadline is a "
         "function"},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, start = "
         "'begin'",
         "start is \"begin\"; it is \"now\" or \"beginning\""},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, zzz = 1",
         "unknown key zzz; known are source, aggregates, on, "
         "on_missing_history, retry, on_error, distribution, id, starts, "
         "unknown, initial, deadlines, start, steps, on_end"},
        {"id = id, on = { ['a.B'] = run }, starts = { 'a.B' }, initial = {}",
         "initial is a table; it must be a function"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(cases[i].members, cases[i].wanted);
}

static void a_saga_is_copied_whole(void **state)
{
    static const struct script_file files[] = {
        {"handlers/x.lua",
         "local moontide = require 'moontide'\n"
         "local n = 0\n"
         "local function run() end\n"
         "return moontide.saga 's' { id = moontide.by 'id',\n"
         "  starts = { 'b.Began' }, unknown = 'error', start = 'now',\n"
         "  on = { ['a.Went'] = run, ['b.Began'] = run },\n"
         "  deadlines = { soon = run, late = function() n = 1 end } }\n"},
        {NULL, NULL},
    };
    const struct declaration *d;
    struct script_fixture f;

    (void)state;
    fixture_open(&f, files);
    assert_string_equal(f.error, "");
    d = &f.set.items[0];
    assert_int_equal(d->kind, DECLARATION_SAGA);
    assert_string_equal(declaration_consumer_type(d), "saga");
    assert_true(d->own_key);
    assert_true(d->starts_now);
    assert_int_equal(d->unknown, SAGA_UNKNOWN_ERROR);
    assert_int_equal(d->ntypes, 2);
    assert_false(d->starts[0]);
    assert_true(d->starts[1]);
    assert_int_equal(d->ndeadlines, 2);
    assert_string_equal(d->deadlines[0].data, "late");
    assert_string_equal(d->deadlines[1].data, "soon");
    assert_non_null(strstr(f.set.warnings[0],
                           "handlers/x.lua:7: the handler for the deadline "
                           "late of \"s\" assigns the local \"n\""));
    fixture_close(&f, files);
}

static void a_name_is_one_consumers(void **state)
{
    static const struct script_file files[] = {
        {"handlers/x.lua",
         "local moontide = require 'moontide'\n"
         "local function run() end\n"
         "return { moontide.projection 's' { on = { ['a.B'] = run } },\n"
         "  moontide.saga 's' { id = run, starts = { 'a.B' }, on = { ['a.B'] "
         "= run } } }\n"},
        {NULL, NULL},
    };
    struct script_fixture f;

    (void)state;
    fixture_open(&f, files);
    assert_string_equal(f.error,
                        "handlers/x.lua:4: saga \"s\": is declared at "
                        "handlers/x.lua:3 already; every projection has a "
                        "name of its own");
    fixture_close(&f, files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_member_is_named),
        cmocka_unit_test(a_saga_is_copied_whole),
        cmocka_unit_test(a_name_is_one_consumers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
