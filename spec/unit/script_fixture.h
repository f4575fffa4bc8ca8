/*
 * Script fixture -- one application in memory for the unit tests of script/:
 * a state in a temporary folder, files given as text, and their handlers.
 */
#ifndef SPEC_UNIT_SCRIPT_FIXTURE_H
#define SPEC_UNIT_SCRIPT_FIXTURE_H

#include "base/buffer.h"
#include "script/declare.h"
#include "script/declare_warnings.h"
#include "script/handler_call.h"
#include "script/lua_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct script_file {
    const char *name; /* handlers/x.lua */
    const char *text;
};

struct script_fixture {
    char folder[128];
    struct script_state *state;
    struct arena arena;
    struct declare_set set;
    struct handler_code *code;
    struct log log;
    char error[DIAG_MESSAGE_SIZE]; /* of the load, "" when it went well */
};

struct script_fixture_load {
    struct script_fixture *fixture;
    const struct script_file *files;
};

static inline void fixture_path(const struct script_fixture *f,
                                const char *name, char *out, size_t size)
{
    int len = snprintf(out, size, "%s/%s", f->folder, name);

    assert_true(len > 0 && (size_t)len < size);
}

static inline void fixture_write(const struct script_fixture *f,
                                 const char *name, const char *text)
{
    char path[256];
    FILE *file;

    fixture_path(f, name, path, sizeof(path));
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline int fixture_load_files(lua_State *L)
{
    struct script_fixture_load *load = lua_touserdata(L, 1);
    struct script_fixture *f = load->fixture;
    struct diag diag;

    declare_begin(L);
    for (const struct script_file *file = load->files; file->name != NULL;
         file++) {
        int top = lua_gettop(L);

        if (lua_call_load(L, text_of(file->text), file->name, &diag) !=
            STATUS_OK)
            return luaL_error(L, "%s", diag.message);
        lua_call(L, 0, LUA_MULTRET);
        declare_file(L, file->name, lua_gettop(L) - top);
        lua_settop(L, top);
    }
    declare_end(L, &f->set);
    declare_warnings_find(L, &f->set);
    return 0;
}

/* Loads the files (the list ends with a NULL name). */
static inline void fixture_open(struct script_fixture *f,
                                const struct script_file *files)
{
    struct script_fixture_load load = {f, files};
    struct lua_failure failure;
    char path[128];
    struct diag diag;

    *f = (struct script_fixture){.log = {.level = LOG_DEBUG}};
    snprintf(f->folder, sizeof(f->folder), "%s/moontide-unit-XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : P_tmpdir);
    assert_non_null(mkdtemp(f->folder));
    fixture_path(f, "handlers", path, sizeof(path));
    assert_int_equal(mkdir(path, 0700), 0);
    fixture_write(f, "tables.sql", "CREATE TABLE t (a INTEGER);\n");
    for (const struct script_file *file = files; file->name != NULL; file++)
        fixture_write(f, file->name, file->text);
    if (script_state_open(
            &(struct state_options){
                /* nothing here is to meet it, on no machine */
                .time_us = 60 * CLOCK_SECOND,
                .memory = 64 << 20,
                .app_dir = f->folder,
                .scripts = "handlers",
            },
            &f->state, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    f->set = (struct declare_set){.arena = &f->arena, .dialect = "sqlite"};
    if (lua_call_run(f->state, fixture_load_files, &load, &failure) !=
        LUA_CALL_OK) {
        snprintf(f->error, sizeof(f->error), "%.2000s", failure.message);
        return;
    }
    if (handler_call_open(
            &(struct handler_call_options){
                .state = f->state,
                .set = &f->set,
                .payload = 1000,
                .log = &f->log,
            },
            &f->code, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
}

static inline void fixture_close(struct script_fixture *f,
                                 const struct script_file *files)
{
    char path[256];

    handler_call_close(f->code);
    script_state_close(f->state);
    arena_free(&f->arena);
    for (const struct script_file *file = files; file->name != NULL; file++) {
        fixture_path(f, file->name, path, sizeof(path));
        (void)unlink(path);
    }
    fixture_path(f, "tables.sql", path, sizeof(path));
    (void)unlink(path);
    fixture_path(f, "handlers", path, sizeof(path));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(f->folder), 0);
}

/** Loads one file, handlers/x.lua, and compares its error; "" wants none. */
static inline void fixture_expect_error(const char *text, const char *wanted)
{
    const struct script_file files[] = {{"handlers/x.lua", text}, {NULL, NULL}};
    struct script_fixture f;

    fixture_open(&f, files);
    assert_string_equal(f.error, wanted);
    fixture_close(&f, files);
}

/** The same for members of a declaration that stand between two pieces of the
 * file; what is wanted of them begins with the line and the name, `where`. */
static inline void fixture_expect_refused(const char *before,
                                          const char *members,
                                          const char *after, const char *where,
                                          const char *wanted)
{
    struct buffer text = BUFFER_EMPTY, error = BUFFER_EMPTY;

    buffer_printf(&text, "%s%s%s", before, members, after);
    buffer_append_string(&error, "");
    if (*wanted != '\0')
        buffer_printf(&error, "handlers/x.lua:%s%s", where, wanted);
    fixture_expect_error(text.data, error.data);
    buffer_free(&text);
    buffer_free(&error);
}

#endif
