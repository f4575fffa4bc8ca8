#include "base/clock.h"
#include "script/lua_call.h"
#include "script/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_state(void **out)
{
    const struct state_options options = {
        .time_us = 20 * CLOCK_SECOND,
        .memory = INT64_C(64) << 20,
    };
    struct script_state *state = NULL;

    if (script_state_open(&options, &state, NULL) != STATUS_OK)
        return -1;
    *out = state;
    return 0;
}

static int close_state(void **out)
{
    script_state_close(*out);
    return 0;
}

/* Runs a chunk with (own string library, the string library of Lua). */
static enum lua_outcome run(struct script_state *state, const char *source,
                            struct lua_failure *failure)
{
    lua_State *L = state->L;
    struct diag diag;
    enum status status;

    status = lua_call_load(L, text_of(source), "test.lua", &diag);
    if (status != STATUS_OK)
        fail_msg("%s", diag.message);
    lua_rawgeti(L, LUA_REGISTRYINDEX, state->globals_ref);
    lua_getfield(L, -1, "string");
    lua_remove(L, -2);
    lua_rawgeti(L, LUA_REGISTRYINDEX, state->hidden_ref);
    lua_getfield(L, -1, "string");
    lua_remove(L, -2);
    return lua_call_protected(L, 2, 0, failure);
}

static void run_well(struct script_state *state, const char *source)
{
    struct lua_failure failure;

    if (run(state, source, &failure) != LUA_CALL_OK)
        fail_msg("%s", failure.message);
}

static void random_patterns_match_as_in_the_library_of_lua(void **state)
{
    run_well(
        *state,
        "local own, stock = ...\n"
        "local random = math.random\n"
        "local pieces = { 'a', 'b', 'ab', 'A', '1', ' ', '-', ']', '[', '.',\n"
        "  '%a', '%A', '%d', '%D', '%s', '%S', '%w', '%W', '%p', '%P', '%l',\n"
        "  '%u', '%c', '%x', '%X', '%g', '%G', '%z', '%.', '%%', '%-', '%]',\n"
        "  '[ab]', '[^ab]', '[a-c]', '[%a-]', '[]]', '[^]]', '[a%]]', '[-a]',\n"
        "  '[a-]', '[%d%s]', '[^%w]', '[z-a]', '*', '+', '-', '?', '(', ')',\n"
        "  '()', '(a', 'b)', '(.-)', '(%w*)', '%1', '%2', '%b()', '%bab',\n"
        "  '%f[%w]', '%f[^a]', '^', '$', '%', '%b', '%f', '[', '[a', '[%',\n"
        "  '\\128', '\\255', '[\\128-\\255]', '(a*(.)%w(%s*))' }\n"
        "local letters = { 'a', 'b', 'c', 'A', '1', '2', ' ', '(', ')', '-',\n"
        "  ']', '.', '%', '\\n', '\\0', '\\128', '\\255', 'ab', 'xyz', '_' }\n"
        "local function build(from, most)\n"
        "  local out = {}\n"
        "  for i = 1, random(0, most) do out[i] = from[random(#from)] end\n"
        "  return table.concat(out)\n"
        "end\n"
        "local function all(f, ...)\n"
        "  return { n = select('#', ...), f, ... }\n"
        "end\n"
        "local function gathered(lib, s, p)\n"
        "  local out = {}\n"
        "  for a, b, c in lib.gmatch(s, p) do\n"
        "    out[#out + 1] = tostring(a) .. '|' .. tostring(b) .. '|' ..\n"
        "      tostring(c)\n"
        "    if #out > 50 then break end\n"
        "  end\n"
        "  return table.concat(out, ';')\n"
        "end\n"
        "local by = { 'x', '<%0>', '%1', '%2%1', '%%', '%a', '' }\n"
        "local calls = {\n"
        "  function(lib, s, p, i) return lib.find(s, p, i) end,\n"
        "  function(lib, s, p, i) return lib.find(s, p, i, true) end,\n"
        "  function(lib, s, p, i) return lib.match(s, p, i) end,\n"
        "  function(lib, s, p) return gathered(lib, s, p) end,\n"
        "  function(lib, s, p, i, r) return lib.gsub(s, p, r) end,\n"
        "  function(lib, s, p, i, r) return lib.gsub(s, p, r, i) end,\n"
        "  function(lib, s, p) return lib.gsub(s, p, { a = 'Q', ab = 1,\n"
        "    b = false }) end,\n"
        "  function(lib, s, p)\n"
        "    local seen = {}\n"
        "    local out = lib.gsub(s, p, function(...)\n"
        "      seen[#seen + 1] = table.concat({ select('#', ...),\n"
        "        tostring((...)) }, ':')\n"
        "      return #seen % 2 == 0 and (...) or nil\n"
        "    end)\n"
        "    return out, table.concat(seen, ',')\n"
        "  end,\n"
        "}\n"
        "local good, bad = 0, 0\n"
        "for round = 1, 60000 do\n"
        "  local s, p = build(letters, 10), build(pieces, 5)\n"
        "  local r, i = by[random(#by)], random(-12, 12)\n"
        "  local call = calls[random(#calls)]\n"
        "  local a = all(pcall(call, own, s, p, i, r))\n"
        "  local b = all(pcall(call, stock, s, p, i, r))\n"
        "  local same = a.n == b.n and a[1] == b[1]\n"
        "  if a[1] then\n"
        "    good = good + 1\n"
        "    for k = 2, a.n + 1 do same = same and a[k] == b[k] end\n"
        "  else\n"
        "    bad = bad + 1\n"
        "  end\n"
        "  if not same then\n"
        "    error(('%q %q %d %q: %s %s, in Lua %s %s'):format(s, p, i, r,\n"
        "      tostring(a[1]), tostring(a[2]), tostring(b[1]),\n"
        "      tostring(b[2])))\n"
        "  end\n"
        "end\n"
        "assert(good > 10000 and bad > 5000, good .. ' ' .. bad)\n");
}

static void every_class_holds_the_bytes_it_holds_in_lua(void **state)
{
    run_well(*state, "local own, stock = ...\n"
                     "for letter in ('acdglpsuwxzACDGLPSUWXZ'):gmatch('.') do\n"
                     "  for byte = 0, 255 do\n"
                     "    local c = string.char(byte)\n"
                     "    assert(own.match(c, '%' .. letter) ==\n"
                     "      stock.match(c, '%' .. letter), letter .. byte)\n"
                     "  end\n"
                     "end\n");
}

static void known_answers_hold(void **state)
{
    run_well(*state,
             "assert(('key = value'):match('^(%w+)%s*=%s*(%w+)$') == 'key')\n"
             "assert(('THE (quick) fox'):find('%((%a+)%)') == 5)\n"
             "assert(('f(a(b)c)d'):match('%b()') == '(a(b)c)')\n"
             "assert(('THE (quick) fox'):gsub('%f[%a]%a+', 'w') ==\n"
             "  'w (w) w')\n"
             "assert(('hello'):gsub('', '-') == '-h-e-l-l-o-')\n"
             "assert(('abc'):gsub('%w', '%0%0') == 'aabbcc')\n"
             "assert(('x'):rep(3, ',') == 'x,x,x')\n"
             "assert(select(2, ('abc'):find('b', 1, true)) == 2)\n"
             "assert(('a\\0b'):find('\\0', 1, true) == 2)\n"
             "assert(('a\\0b'):match('a\\0(b)') == 'b')\n"
             "assert(('2024-01-05'):match('(%d+)-(%d+)') == '2024')\n");
}

static void hopeless(struct script_state *state, const char *source)
{
    struct lua_failure failure;
    int64_t begun = clock_monotonic();

    state->limits.time_us = CLOCK_SECOND / 10;
    assert_int_equal(run(state, source, &failure), LUA_CALL_TIMEOUT);
    assert_string_equal(failure.message, "test.lua:1: handler ran longer than"
                                         " limits.time = 100ms");
    assert_true(clock_monotonic() - begun < 30 * CLOCK_SECOND);
    state->limits.time_us = 20 * CLOCK_SECOND;
}

static void a_hopeless_pattern_ends_at_the_time_limit(void **state)
{
    hopeless(*state, "(('a'):rep(30)):find(('a?'):rep(30) .. ('a'):rep(30))");
    hopeless(*state, "(('a'):rep(3e4)):match(('.-'):rep(9) .. 'b')");
    hopeless(*state, "(('a'):rep(4e4)):gsub(('.*'):rep(8) .. 'b', '')");
    hopeless(*state, "for _ in (('('):rep(2e6)):gmatch('%b()') do end");
    hopeless(*state, "pcall(string.find, ('a'):rep(30), ('a?'):rep(30) .."
                     " ('a'):rep(30)) while true do end");
}

static void a_plain_search_takes_linear_time(void **state)
{
    run_well(*state, "local s = ('a'):rep(2^23)\n"
                     "assert(s:find(('a'):rep(2^20) .. 'b', 1, true) == nil)\n"
                     "assert(s:find(('a'):rep(2^20) .. 'b') == nil)\n");
}

static void deep_patterns_are_refused_and_do_not_end_the_stack(void **state)
{
    run_well(*state, "local ok, why = pcall(string.match, ('a'):rep(9e4),\n"
                     "  ('a?'):rep(9e4))\n"
                     "assert(not ok and why:find('too complex'), why)\n");
}

static void a_replacement_that_ends_in_a_percent_sign_is_refused(void **state)
{
    run_well(*state,
             "local ok, why = pcall(string.gsub, 'a', 'a', '5%')\n"
             "assert(not ok and why:find('invalid use of', 1, true))\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            random_patterns_match_as_in_the_library_of_lua, open_state,
            close_state),
        cmocka_unit_test_setup_teardown(
            every_class_holds_the_bytes_it_holds_in_lua, open_state,
            close_state),
        cmocka_unit_test_setup_teardown(known_answers_hold, open_state,
                                        close_state),
        cmocka_unit_test_setup_teardown(
            a_hopeless_pattern_ends_at_the_time_limit, open_state, close_state),
        cmocka_unit_test_setup_teardown(a_plain_search_takes_linear_time,
                                        open_state, close_state),
        cmocka_unit_test_setup_teardown(
            deep_patterns_are_refused_and_do_not_end_the_stack, open_state,
            close_state),
        cmocka_unit_test_setup_teardown(
            a_replacement_that_ends_in_a_percent_sign_is_refused, open_state,
            close_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
