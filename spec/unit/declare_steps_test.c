/* script/declare_steps.c and lua/moontide/declare_steps.lua: orchestrated
 * sagas. */
#include "model/saga_steps.h"
#include "script_fixture.h"

/* What is said of a saga "s" with the given steps. */
static void expect(const char *steps, const char *wanted)
{
    fixture_expect_refused(
        "local moontide = require 'moontide'\n"
        "local function run() end\n"
        "local void = { command = 'V', succeeds = 'a.Voided' }\n"
        "return { moontide.publisher 'p' { to = 'stdout:' },\n"
        "moontide.saga 's' { id = moontide.by 'id', starts = { 'a.B' }, ",
        steps, " } }\n", "5: saga \"s\": ", wanted);
}

#define A                                                                      \
    "{ name = 'a', to = 'p', command = 'C', timeout = '1m', "                  \
    "succeeds = 'a.Yes', compensate = void }"
#define PIVOT "{ name = 'p', to = 'p', command = 'C', pivot = true }"

static void every_wrong_step_is_named(void **state)
{
    static const struct {
        const char *steps, *wanted;
    } cases[] = {
        {"steps = { " A ", " PIVOT " }", ""},
        {"steps = {}", "steps is empty; it must be a list of steps"},
        {"steps = run", "steps is a function; it must be a list of steps"},
        {"steps = { " A ", x = 1 }",
         "steps must be a plain list; it has the key x"},
        {"steps = { " A ", [3] = " PIVOT " }",
         "steps must be a plain list; there is nothing at 2"},
        {"steps = { 1 }", "steps[1] is a number; it must be a table"},
        {"steps = { { nam = 'a' } }",
         "steps[1]: unknown key nam; did you mean \"name\"?"},
        {"steps = { {} }",
         "steps[1] has no name: every step has one of its own"},
        {"steps = { { name = 'a' } }",
         "step \"a\" has no to: the publisher that its command goes to"},
        {"steps = { { name = 'a', to = 'p' } }",
         "step \"a\" has no command: the type of the message that it sends"},
        {"steps = { { name = 'a', to = 'p', command = 'C', succeeds = 'Y' } }",
         "step \"a\" awaits an answer and has no timeout, as in timeout = "
         "\"10m\""},
        {"steps = { { name = 'a', to = 'p', command = 'C', succeeds = 'Y', "
         "timeout = 0 } }",
         "step \"a\": timeout is 0; it must be at least a millisecond"},
        {"steps = { { name = 'a', to = 'p', command = 'C', succeeds = {} } }",
         "step \"a\": succeeds is empty; it names at least one type"},
        {"steps = { { name = 'a', to = 'p', command = 'C', timeout = 1 } }",
         "step \"a\" has a timeout and no succeeds: it awaits nothing, it is "
         "done when it is sent"},
        {"steps = { { name = 'a', to = 'p', command = 'C', fails = 'N' } }",
         "step \"a\" has fails and no succeeds: the type that says that it "
         "was done"},
        {"steps = { { name = 'a', to = 'p', command = 'C' } }",
         "step \"a\" says nothing about compensate: what undoes it, or false "
         "if nothing has to"},
        {"steps = { { name = 'a', to = 'p', command = 'C', compensate = void "
         "} }",
         "step \"a\" has compensate and no succeeds: what may arrive behind "
         "its compensation must say that it was done"},
        {"steps = { { name = 'a', to = 'p', command = 'C', succeeds = 'Y', "
         "timeout = 1, compensate = { command = 'V' } } }",
         "step \"a\": compensate has no succeeds: it is sent again until that "
         "type says that it was done"},
        {"steps = { { name = 'a', to = 'p', command = 'C', succeeds = 'Y', "
         "timeout = 1, compensate = true } }",
         "step \"a\": compensate is a boolean; it must be a table like { "
         "command = \"payment.Void\", succeeds = \"payment.Voided\" }, or "
         "false"},
        {"steps = { { name = 'a', to = 'p', command = 'C', pivot = true, "
         "compensate = void } }",
         "step \"a\" is the pivot and has compensate: nothing is undone once "
         "the pivot has succeeded"},
        {"steps = { { name = 'a', to = 'p', command = 'C', message = {}, "
         "pivot = true } }",
         "step \"a\": message is a table; it must be a function"},
        {"steps = { " A ", " A " }",
         "two steps are called \"a\"; every step has a name of its own"},
        {"steps = { " PIVOT ", { name = 'q', to = 'p', command = 'C', pivot = "
         "true } }",
         "steps \"p\" and \"q\" are both the pivot; there is one, behind which "
         "nothing is undone"},
        {"steps = { " PIVOT ", " A " }",
         "step \"a\" is behind the pivot \"p\" and must be retriable: it "
         "cannot be undone any more"},
        {"steps = { { name = 'r', to = 'p', command = 'C', retriable = true } "
         "}",
         "step \"r\" is retriable and no pivot is before it; say pivot = true "
         "where nothing is undone any more"},
        {"steps = { { name = 'r', to = 'p', command = 'C', pivot = true, "
         "retriable = true } }",
         "step \"r\" is the pivot and retriable; the pivot may fail"},
        {"steps = { " A ", { name = 'b', to = 'p', command = 'C', succeeds = "
         "'a.Voided', timeout = 1, compensate = false } }",
         "\"a.Voided\" is compensate.succeeds of step \"a\" and succeeds of "
         "step \"b\"; each answer has a type of its own"},
        {"steps = { { name = 'b', to = 'p', command = 'C', succeeds = 'a.B', "
         "timeout = 1, compensate = false } }",
         "\"a.B\" begins the saga and is succeeds of step \"b\""},
        {"steps = { { name = 'a', to = 'pp', command = 'C', pivot = true } }",
         "step \"a\": no publisher is called \"pp\"; add moontide.publisher "
         "\"pp\" { to = \"...\" } to what a file returns"},
        {"on = { ['a.B'] = run }, on_end = run",
         "on_end is of sagas with steps"},
        {"steps = { " A " }, on_end = 1",
         "on_end is a number; it must be a function"},
        {"steps = { " A " }, deadlines = { ['moontide:x'] = run }",
         "deadlines[\"moontide:x\"]: names that begin with \"moontide:\" are "
         "the host's own"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(cases[i].steps, cases[i].wanted);
}

static void steps_are_copied_whole(void **state)
{
    static const struct script_file files[] = {
        {"handlers/x.lua",
         "local moontide = require 'moontide'\n"
         "local n = 0\n"
         "local function run() end\n"
         "return { moontide.publisher 'p' { to = 'stdout:' },\n"
         " moontide.publisher 'q' { to = 'stdout:' },\n"
         " moontide.saga 's' { id = moontide.by 'id', starts = { 'z.Z' },\n"
         "  on = { ['a.Other'] = run }, on_end = run,\n"
         "  steps = {\n"
         "   { name = 'a', to = 'p', command = 'C', timeout = '2s',\n"
         "     message = function() n = 1 end,\n"
         "     succeeds = { 'a.Yes', 'a.Yes2' }, fails = 'a.No',\n"
         "     compensate = { command = 'V', to = 'q', succeeds = 'a.Back',\n"
         "                    timeout = 1 } },\n"
         "   { name = 'b', to = 'p', command = 'D', pivot = true },\n"
         "   { name = 'c', to = 'q', command = 'E', retriable = true } } } "
         "}\n"},
        {NULL, NULL},
    };
    static const char *const types[] = {"a.Back", "a.No",   "a.Other",
                                        "a.Yes",  "a.Yes2", "z.Z"};
    const struct declaration *d;
    struct script_fixture f;

    (void)state;
    fixture_open(&f, files);
    assert_string_equal(f.error, "");
    d = &f.set.items[0];
    assert_int_equal(d->ntypes, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(d->types[i].data, types[i]);
        assert_int_equal(d->starts[i], i == 5);
    }
    assert_int_equal(d->nsteps, 3);
    assert_true(d->tells_end);
    assert_string_equal(d->steps[0].name.data, "a");
    assert_string_equal(d->steps[0].forward.to.data, "p");
    assert_string_equal(d->steps[0].forward.command.data, "C");
    assert_int_equal(d->steps[0].forward.nsucceeds, 2);
    assert_int_equal(d->steps[0].forward.timeout_us, 2000000);
    assert_string_equal(d->steps[0].fails[0].data, "a.No");
    assert_true(d->steps[0].compensated);
    assert_string_equal(d->steps[0].back.to.data, "q");
    assert_int_equal(d->steps[0].back.timeout_us, 1000000);
    assert_true(d->steps[1].pivot && !d->steps[1].compensated);
    assert_int_equal(d->steps[1].forward.nsucceeds, 0);
    assert_true(d->steps[2].retriable && !d->steps[2].pivot);
    assert_non_null(strstr(f.set.warnings[0],
                           "handlers/x.lua:10: the message of the step a of "
                           "\"s\" assigns the local \"n\""));
    fixture_close(&f, files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_step_is_named),
        cmocka_unit_test(steps_are_copied_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
