#include "base/buffer.h"
#include "script/table_file.h"

#include <lauxlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct folder {
    char path[128];
    char file[160];
};

static int make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));

    assert_non_null(folder);
    (void)snprintf(folder->path, sizeof(folder->path),
                   "%s/table_file_test.XXXXXX",
                   getenv("TMPDIR") != NULL ? getenv("TMPDIR") : P_tmpdir);
    assert_non_null(mkdtemp(folder->path));
    (void)snprintf(folder->file, sizeof(folder->file), "%s/c.lua",
                   folder->path);
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;
    char secret[160];

    (void)snprintf(secret, sizeof(secret), "%s/secret", folder->path);
    (void)unlink(secret);
    (void)unlink(folder->file);
    (void)rmdir(folder->path);
    free(folder);
    return 0;
}

static void write_file(const char *path, struct text content)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_int_equal(fwrite(content.data, 1, content.len, out), content.len);
    assert_int_equal(fclose(out), 0);
}

/* One line per entry: key=kind:value. */
static enum status print_entry(void *arg, const struct table_entry *entry,
                               struct diag *diag)
{
    struct buffer *out = arg;

    (void)diag;
    buffer_printf(out, "%s=", entry->key);
    switch (entry->kind) {
    case TABLE_STRING:
        buffer_printf(out, "s:" TEXT_FORMAT, TEXT_ARGS(entry->string));
        break;
    case TABLE_NUMBER:
        buffer_printf(out, "n:%g", entry->number);
        break;
    case TABLE_BOOLEAN:
        buffer_printf(out, "b:%d", entry->boolean);
        break;
    case TABLE_LIST:
        buffer_append_string(out, "l:");
        for (size_t i = 0; i < entry->nitems; i++)
            buffer_printf(out, "[" TEXT_FORMAT "]", TEXT_ARGS(entry->items[i]));
        break;
    }
    buffer_append_char(out, '\n');
    return STATUS_OK;
}

static void expect(const struct folder *folder, const char *source,
                   const char *entries)
{
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    write_file(folder->file, text_of(source));
    if (table_file_load(folder->file, print_entry, &out, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    assert_string_equal(buffer_text(&out).data, entries);
    buffer_free(&out);
}

/* The message after the name of the file. */
static void refuse(const struct folder *folder, struct text source,
                   const char *message)
{
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    write_file(folder->file, source);
    assert_int_equal(table_file_load(folder->file, print_entry, &out, &diag),
                     STATUS_CONFIG);
    assert_null(out.data); /* no entry before an error */
    if (strncmp(diag.message, folder->file, strlen(folder->file)) != 0 ||
        strcmp(diag.message + strlen(folder->file), message) != 0)
        fail_msg("%s", diag.message);
}

static void leaves_come_flat_and_sorted(void **state)
{
    expect(*state,
           "return { workers = 2, database = 'sqlite:x.db', jit = false,\n"
           "  poll = { min_interval = '5ms', max_interval = 0.5 },\n"
           "  grants = { 'os', 'io' }, a = { b = { c = true } }, none = {} }",
           "a.b.c=b:1\n"
           "database=s:sqlite:x.db\n"
           "grants=l:[os][io]\n"
           "jit=b:0\n"
           "none=l:\n"
           "poll.max_interval=n:0.5\n"
           "poll.min_interval=s:5ms\n"
           "workers=n:2\n");
    expect(*state, "local t = {}\nreturn t", "");
}

static void the_environment_and_files_can_be_read(void **state)
{
    const struct folder *folder = *state;
    char secret[160];

    (void)snprintf(secret, sizeof(secret), "%s/secret", folder->path);
    write_file(secret, TEXT_LITERAL("two\nlines\n"));
    assert_int_equal(setenv("TABLE_FILE_TEST", "from outside", 1), 0);
    assert_int_equal(unsetenv("TABLE_FILE_NONE"), 0);
    expect(folder,
           "return { a = env 'TABLE_FILE_TEST', b = env 'TABLE_FILE_NONE',\n"
           "  c = env('TABLE_FILE_NONE', 'otherwise'), d = file 'secret' }",
           "a=s:from outside\n"
           "c=s:otherwise\n"
           "d=s:two\nlines\n");
}

static void nothing_else_is_there(void **state)
{
    static const char *const names[] = {"print", "pcall", "string",      "_G",
                                        "load",  "pairs", "setmetatable"};
    const struct folder *folder = *state;
    char source[96];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(source, sizeof(source),
                       "return { there = %s ~= nil and true or false }",
                       names[i]);
        expect(folder, source, "there=b:0\n");
    }
}

static void faults_have_file_and_line(void **state)
{
    static const struct {
        const char *source;
        const char *message;
    } cases[] = {
        {"return {\n x = = 1 }", ":2: unexpected symbol near '='"},
        {"\nlocal x = nil + 1\nreturn {}",
         ":2: attempt to perform arithmetic on a nil value"},
        {"return { x = os.time() }",
         ":1: the configuration has no `os`; env \"NAME\" gives an "
         "environment variable, env(\"NAME\", \"other\") one with a default"},
        {"return { x = io.open('a') }",
         ":1: the configuration has no `io`; file \"NAME\" gives the content "
         "of a file"},
        {"return require 'x'",
         ":1: the configuration has no `require`; file \"NAME\" gives the "
         "content of a file"},
        {"return 5", ": must return a table, not a number"},
        {"local x = 1", ": must return a table, not a nil"},
        {"return { poll = { x = function() end } }",
         ": 'poll.x' may not be a function"},
        {"return { grants = { 'os', 5 } }",
         ": 'grants' has a key that is a number"},
        {"return { 'a', b = 1 }", ": 'the table' has a key that is a number"},
        {"return { [true] = 1 }", ": 'the table' has a key that is a boolean"},
        {"return { ['a\\0b'] = 1 }", ": 'the table' has a key with a NUL byte"},
        {"\nreturn { x = file 'missing' }", NULL},
        {"\nwhile true do end", ":2: the file ran longer than 2 seconds"},
        {"local s = ('x'):rep(1e6) while true do s = s .. s end",
         ": the file needed more than 64 MiB"},
    };
    const struct folder *folder = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char message[320];

        (void)snprintf(
            message, sizeof(message),
            ":2: file: cannot open %s/missing: No such file or directory",
            folder->path);
        refuse(folder, text_of(cases[i].source),
               cases[i].message != NULL ? cases[i].message : message);
    }
    refuse(folder, TEXT_LITERAL("\033LJ\2\0"),
           ": is bytecode; scripts are Lua text");
}

static void a_table_that_holds_itself_is_refused(void **state)
{
    struct folder *folder = *state;
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    write_file(folder->file,
               TEXT_LITERAL("local t = { } t.a = t t.b = t t.c = t t.d = t\n"
                            "return t"));
    assert_int_equal(table_file_load(folder->file, print_entry, &out, &diag),
                     STATUS_CONFIG);
    assert_non_null(strstr(diag.message, "is nested too deeply"));
}

static void a_missing_file_is_named(void **state)
{
    const struct folder *folder = *state;
    struct diag diag;

    assert_int_equal(table_file_load(folder->file, print_entry, NULL, &diag),
                     STATUS_CONFIG);
    assert_non_null(strstr(diag.message, folder->file));
}

static enum status stop(void *arg, const struct table_entry *entry,
                        struct diag *diag)
{
    int *calls = arg;

    (void)entry;
    (*calls)++;
    return diag_set(diag, STATUS_USAGE, "enough");
}

static void the_callback_may_end_it(void **state)
{
    const struct folder *folder = *state;
    struct diag diag;
    int calls = 0;

    write_file(folder->file, TEXT_LITERAL("return { a = 1, b = 2 }"));
    assert_int_equal(table_file_load(folder->file, stop, &calls, &diag),
                     STATUS_USAGE);
    assert_int_equal(calls, 1);
}

static void a_table_of_another_state_is_read(void **state)
{
    lua_State *L = luaL_newstate();
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;

    (void)state;
    assert_non_null(L);
    lua_newtable(L);
    lua_pushnumber(L, 5);
    lua_setfield(L, -2, "batch");
    assert_int_equal(
        table_file_visit(L, 1, "options", print_entry, &out, &diag), STATUS_OK);
    assert_string_equal(out.data, "batch=n:5\n");
    assert_int_equal(lua_gettop(L), 1);
    lua_pushvalue(L, 1);
    lua_setfield(L, 1, "self");
    assert_int_equal(
        table_file_visit(L, 1, "options", print_entry, &out, &diag),
        STATUS_CONFIG);
    lua_pushnumber(L, 1);
    assert_int_equal(
        table_file_visit(L, 2, "options", print_entry, &out, &diag),
        STATUS_CONFIG);
    assert_int_equal(lua_gettop(L), 2);
    buffer_free(&out);
    lua_close(L);
}

#define FOLDER_TEST(name)                                                      \
    cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(leaves_come_flat_and_sorted),
        FOLDER_TEST(the_environment_and_files_can_be_read),
        FOLDER_TEST(nothing_else_is_there),
        FOLDER_TEST(faults_have_file_and_line),
        FOLDER_TEST(a_table_that_holds_itself_is_refused),
        FOLDER_TEST(a_missing_file_is_named),
        FOLDER_TEST(the_callback_may_end_it),
        cmocka_unit_test(a_table_of_another_state_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
