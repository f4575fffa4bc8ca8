/*
 * What changes a declaration's fingerprint, and what does not: each case loads
 * an application from files of its own.
 */
#include "base/buffer.h"
#include "script/script.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct file {
    const char *name, *text; /* the list ends with NULL */
};

struct loading {
    const char *dialect; /* NULL: sqlite */
    int partitions;      /* 0: 12 */
    struct file files[6];
};

#define HEAD "local moontide = require 'moontide'\nlocal t = moontide.types\n"
#define BODY                                                                   \
    "return moontide.projection 'p' { aggregates = { 'b', 'a' },\n"            \
    "  fields = { x = t.text() },\n"                                           \
    "  key = function(event) return event.payload.x end,\n"                    \
    "  on = { ['A'] = function(state, event) state.x = 'one' end } }\n"

static const struct loading plain = {.files = {{"handlers/p.lua", HEAD BODY}}};

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* The fingerprint of projection "p". */
static struct fingerprint load(const struct loading *loading)
{
    struct script_options options = {
        .scripts = "handlers",
        .dialect = loading->dialect != NULL ? loading->dialect : "sqlite",
        .partitions = loading->partitions != 0 ? loading->partitions : 12,
        .limits = {.time_us = 5 * CLOCK_SECOND,
                   .memory = INT64_C(64) << 20,
                   .payload = 1024},
    };
    char folder[128];
    struct fingerprint fingerprint = {.part = {""}};
    const struct declaration *declarations;
    struct script *script;
    struct diag diag;
    size_t count;

    snprintf(folder, sizeof(folder), "%s/moontide-unit-XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : P_tmpdir);
    assert_non_null(mkdtemp(folder));
    for (const struct file *file = loading->files; file->name != NULL; file++)
        write_file(folder, file->name, file->text);
    options.app_dir = folder;
    if (script_open(&options, &script, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    declarations = script_declarations(script, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(declarations[i].name, "p") == 0)
            fingerprint = declarations[i].fingerprint;
    for (int p = 0; p < FINGERPRINT_PARTS; p++)
        assert_true(strlen(fingerprint.part[p]) >= 20 &&
                    strlen(fingerprint.part[p]) <= FINGERPRINT_PART_MAX);
    script_close(script);
    assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    return fingerprint;
}

/* `differs`: words of the parts that must differ, as "key code". */
static void compare(const struct loading *a, const struct loading *b,
                    const char *differs)
{
    struct fingerprint first = load(a), second = load(b);
    struct buffer found = BUFFER_EMPTY;

    buffer_append_string(&found, "");
    for (int p = 0; p < FINGERPRINT_PARTS; p++)
        if (strcmp(first.part[p], second.part[p]) != 0)
            buffer_printf(&found, "%s%s", found.len > 0 ? " " : "",
                          fingerprint_part_word(p));
    if (!text_equal(buffer_text(&found), text_of(differs)))
        fail_msg("differ: '" TEXT_FORMAT "', expected: '%s', in\n%s",
                 TEXT_ARGS(buffer_text(&found)), differs, b->files[0].text);
    buffer_free(&found);
}

static void compare_texts(const char *a, const char *b, const char *differs)
{
    compare(&(struct loading){.files = {{"handlers/p.lua", a}}},
            &(struct loading){.files = {{"handlers/p.lua", b}}}, differs);
}

static void a_second_load_gives_the_same(void **state)
{
    (void)state;
    compare(&plain, &plain, "");
}

static void layout_comments_and_quotes_do_not_count(void **state)
{
    (void)state;
    compare_texts(
        HEAD BODY,
        "-- what it is for\n"
        "local moontide=require\"moontide\" local t=moontide.types\r\n"
        "return moontide.projection[[p]]{aggregates={\"b\",\"a\"},--[[x]]\n\n"
        "fields={x=t.text()},key=function(event) -- the key\n"
        "return event.payload.x end,on={[\"A\"]=function(state,event)\n\n"
        "state.x=\"\\111ne\" end}}",
        "");
}

static void the_name_of_the_file_and_its_neighbours_do_not_count(void **state)
{
    const struct loading other = {
        .files = {{"handlers/z.lua", HEAD BODY},
                  {"handlers/a.lua",
                   HEAD "return moontide.projection 'q' { key = "
                        "moontide.by 'x', on = { B = function() end } }"}},
    };

    (void)state;
    compare(&plain, &other, "");
}

static void each_change_shows_in_its_part(void **state)
{
    static const struct {
        const char *from, *to, *differs;
    } changes[] = {
        {"'b', 'a'", "'a', 'c'", "sources code"},
        {"aggregates = { 'b', 'a' },", "", "sources code"},
        {"['A'] =", "['B'] =", "sources code"},
        {"end } }\n", "end, ['B'] = function() end } }", "sources code"},
        {"event.payload.x end,", "event.payload.y end,", "key code"},
        {"  key = function(event) return event.payload.x end,\n", "",
         "key code"},
        {"x = t.text()", "x = t.text(), y = t.date()", "shape code"},
        {"x = t.text()", "x = t.text { unique = true }", "shape code"},
        {"x = t.text()", "x = t.text { optional = true }", "shape code"},
        {"x = t.text()", "x = t.enum { 'one' }", "shape code"},
        {"x = t.text()", "z = t.text()", "shape code"},
        {"fields =", "table = 'other', fields =", "shape code"},
        {"'one'", "'two'", "code"},
        {"fields =", "initial = function() return { x = 1 } end, fields =",
         "code"},
        {"fields =", "revision = 2, fields =", "code"},
        {"fields =", "on_change = 'rebuild', fields =", "code"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const char *at = strstr(BODY, changes[i].from);
        struct buffer text = BUFFER_EMPTY;

        assert_non_null(at);
        buffer_append_string(&text, HEAD);
        buffer_append(&text, BODY, (size_t)(at - BODY));
        buffer_append_string(&text, changes[i].to);
        buffer_append_string(&text, at + strlen(changes[i].from));
        compare_texts(HEAD BODY, text.data, changes[i].differs);
        buffer_free(&text);
    }
}

static void the_order_of_aggregates_does_not_count_as_sources(void **state)
{
    (void)state;
    compare_texts(HEAD BODY,
                  HEAD "return moontide.projection 'p' { aggregates = { 'a', "
                       "'b' },\n  fields = { x = t.text() },\n"
                       "  key = function(event) return event.payload.x end,\n"
                       "  on = { ['A'] = function(state, event) state.x = "
                       "'one' end } }\n",
                  "code");
}

static void the_numbers_of_partitions_and_enum_words_count(void **state)
{
    struct loading more = plain;

    (void)state;
    more.partitions = 24;
    compare(&plain, &more, "key");
    compare_texts(HEAD "return moontide.projection 'p' { fields = { x = "
                       "t.enum { 'ab', 'c' } }, on = { A = print } }",
                  HEAD "return moontide.projection 'p' { fields = { x = "
                       "t.enum { 'a', 'bc' } }, on = { A = print } }",
                  "shape code");
    compare_texts(HEAD "return moontide.projection 'p' { fields = { x = "
                       "t.decimal(9, 2) }, on = { A = print } }",
                  HEAD "return moontide.projection 'p' { fields = { x = "
                       "t.decimal(9, 3) }, on = { A = print } }",
                  "shape code");
}

#define ON "on = { A = function(s) s.x = 1 end } }"
#define P  HEAD "return moontide.projection 'p' { "

static void only_the_key_functions_own_text_is_the_key(void **state)
{
    (void)state;
    /* several functions on one line */
    compare_texts(P "key = function(e) return e.key end, on = { A = "
                    "function(s) s.x = 1 end } }",
                  P "key = function(e) return e.key end, on = { A = "
                    "function(s) s.x = 2 end } }",
                  "code");
    compare_texts(P "on = { A = function(s) if s then repeat local x until x "
                    "end end }, key = function(e) return e.a end }",
                  P "on = { A = function(s) if s then repeat local y until y "
                    "end end }, key = function(e) return e.b end }",
                  "key code");
    /* named elsewhere in the file, over several lines, the bracket below */
    compare_texts(HEAD "local function key(e)\n for _ = 1, 2 do end\n return "
                       "e.key end\nlocal other = function() return 1 end\n"
                       "return moontide.projection 'p' { key = key, " ON,
                  HEAD "\n\nlocal other = function() return 2 end\n"
                       "local function key\n(e) for _ = 1, 2 do end\n return "
                       "e.key end\n"
                       "return moontide.projection 'p' { key = key, " ON,
                  "code");
    /* what stands around it is not */
    compare_texts(HEAD "local function pick(e) return e.key end\n"
                       "return moontide.projection 'p' { key = pick, " ON,
                  HEAD "local later = 1\n\nlocal function pick(e) -- x\n"
                       "return e.key end\n"
                       "return moontide.projection 'p' { key = pick, " ON,
                  "code");
    /* two of one line that cannot be told apart: the whole line */
    compare_texts(HEAD "local pick, other = function() end, function() end\n"
                       "return moontide.projection 'p' { key = pick, " ON,
                  HEAD "local pick, other = function() end, function(a) end\n"
                       "return moontide.projection 'p' { key = pick, " ON,
                  "key code");
}

static void a_key_of_the_payload_counts_by_its_name(void **state)
{
    (void)state;
    compare_texts(P "key = moontide.by 'x', " ON,
                  P "key = moontide.by 'y', " ON, "key code");
    compare_texts(P "key = moontide.by 'x', " ON,
                  HEAD "local key = moontide.by 'x'\n"
                       "return moontide.projection 'p' { key = key, " ON,
                  "code");
}

static void a_key_function_of_another_file_is_found_there(void **state)
{
    const char *declaration = HEAD
        "local keys = require 'lib.keys'\n"
        "return moontide.projection 'p' { key = keys.pick, " ON;
    const struct loading one = {
        .files = {{"handlers/p.lua", declaration},
                  {"lib/keys.lua",
                   "return { pick = function(e)\nreturn e.a end,\nrest = 1 }"}},
    };
    struct loading other = one;

    (void)state;
    other.files[1]
        .text = "return { pick = function(e)\nreturn e.b end,\nrest = 1 }";
    compare(&one, &other, "key code");
    other.files[1]
        .text = "return { pick = function(e)\nreturn e.a end,\nrest = 2 }";
    compare(&one, &other, "code");
}

/* `a` and `b` are texts of lib/two.lua. */
static void compare_modules(const char *declaration, const char *one,
                            const char *a, const char *b, const char *differs)
{
    const struct loading before = {
        .files = {{"handlers/p.lua", declaration},
                  {"handlers/lib/one.lua", one},
                  {"lib/two.lua", a}},
    };
    struct loading after = before;

    after.files[2].text = b;
    compare(&before, &after, differs);
}

static void every_required_file_counts_transitively(void **state)
{
    const char *uses = HEAD
        "require 'lib.one'\nreturn moontide.projection 'p' { " ON;
    const char *lazy = HEAD
        "return moontide.projection 'p' { on = { A = function(s)\n"
        "s.x = require('lib.two') end } }";

    (void)state;
    compare_modules(uses, "return require \"lib.two\"", "return 1", "return 2",
                    "code");
    compare_modules(uses, "return require \"lib.two\"", "return 1",
                    "return  1 -- one", "");
    compare_modules(uses, "return 1", "return 1", "return 2", "");
    /* in a function that nobody has called yet */
    compare_modules(lazy, "", "return 1", "return 2", "code");
    /* by a name that is no text of the file, by another name for require */
    compare_modules(uses,
                    "local r = require\n"
                    "local _, x = pcall(r, 'lib.' .. 'two') return x",
                    "return 1", "return 2", "code");
    /* which file has which content */
    compare(&(struct loading){.files = {{"handlers/p.lua",
                                         HEAD "require 'a' require 'b' "
                                              "return moontide.projection "
                                              "'p' { " ON},
                                        {"a.lua", "return 1"},
                                        {"b.lua", "return 2"}}},
            &(struct loading){
                .files = {{"handlers/p.lua", HEAD "require 'a' require 'b' "
                                                  "return moontide.projection "
                                                  "'p' { " ON},
                          {"a.lua", "return 2"},
                          {"b.lua", "return 1"}}},
            "code");
}

static void who_loaded_a_module_first_does_not_count(void **state)
{
    const struct file lib = {"lib/two.lua", "return 1"};
    const char *uses = HEAD
        "require 'lib.two'\nreturn moontide.projection 'p' { " ON;
    const char *other = HEAD
        "require 'lib.two'\nreturn moontide.projection 'q' { " ON;

    (void)state;
    compare(&(struct loading){.files = {{"handlers/p.lua", uses}, lib}},
            &(struct loading){.files = {{"handlers/p.lua", uses},
                                        {"handlers/a.lua", other},
                                        lib}},
            "");
}

#define SQL_P                                                                  \
    HEAD                                                                       \
        "return moontide.sql_projection 'p' { tables = { sqlite = 'a.sql', "   \
        "postgres = 'b.sql', mysql = 'c.sql' }, on = { A = function() end } }"

static void compare_tables(const char *dialect, const char *a, const char *b,
                           const char *differs)
{
    struct loading one = {
        .dialect = dialect,
        .files = {{"handlers/p.lua", SQL_P},
                  {"a.sql", a},
                  {"b.sql", a},
                  {"c.sql", a}},
    };
    struct loading two = one;

    for (int i = 1; i <= 3; i++)
        two.files[i].text = b;
    compare(&one, &two, differs);
}

static void the_text_of_tables_counts_without_comments(void **state)
{
    static const char *const dialects[] = {"sqlite", "postgres", "mysql"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        compare_tables(dialects[i], "CREATE TABLE t (a INT);",
                       "CREATE TABLE t (a BIGINT);", "shape");
        compare_tables(
            dialects[i], "CREATE TABLE t (a INT);",
            "-- what it is for\nCREATE TABLE t\n  (a INT /* x */);\n", "");
        compare_tables(dialects[i], "INSERT INTO t VALUES ('a -- b');",
                       "INSERT INTO t VALUES ('a -- c');", "shape");
        compare_tables(dialects[i], "SELECT 1 'open", "SELECT 1 'opened",
                       "shape");
    }
    compare_tables("mysql", "CREATE TABLE t (a INT) /*!40100 A */",
                   "CREATE TABLE t (a INT) /*!40100 B */", "shape");
}

static void tables_of_another_dialect_do_not_count(void **state)
{
    struct loading one = {
        .files = {{"handlers/p.lua", SQL_P},
                  {"a.sql", "CREATE TABLE t (a INT)"},
                  {"b.sql", "CREATE TABLE t (a INT)"},
                  {"c.sql", "CREATE TABLE t (a INT)"}},
    };
    struct loading two = one;

    (void)state;
    two.files[2].text = "CREATE TABLE t (a BIGINT)";
    compare(&one, &two, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_load_gives_the_same),
        cmocka_unit_test(layout_comments_and_quotes_do_not_count),
        cmocka_unit_test(the_name_of_the_file_and_its_neighbours_do_not_count),
        cmocka_unit_test(each_change_shows_in_its_part),
        cmocka_unit_test(the_order_of_aggregates_does_not_count_as_sources),
        cmocka_unit_test(the_numbers_of_partitions_and_enum_words_count),
        cmocka_unit_test(only_the_key_functions_own_text_is_the_key),
        cmocka_unit_test(a_key_of_the_payload_counts_by_its_name),
        cmocka_unit_test(a_key_function_of_another_file_is_found_there),
        cmocka_unit_test(every_required_file_counts_transitively),
        cmocka_unit_test(who_loaded_a_module_first_does_not_count),
        cmocka_unit_test(the_text_of_tables_counts_without_comments),
        cmocka_unit_test(tables_of_another_dialect_do_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
