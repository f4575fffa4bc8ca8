/*
 * Declare -- turns what the files of the scripts folder return into the
 * declarations that the host works with.
 *
 * lua/moontide/declare.lua checks them; this file copies the result to C.
 * script/script.c loads the files and calls declare_begin once, declare_file
 * for each file in order and declare_end once. All three run in protected
 * code: they raise "handlers/x.lua:12: what, and what to do".
 */
#ifndef HOST_SCRIPT_DECLARE_H
#define HOST_SCRIPT_DECLARE_H

#include "base/arena.h"
#include "model/declaration.h"
#include "model/event_types.h"
#include "model/publisher.h"
#include "script/state.h"

/** The user's functions of one declaration, as registry references. */
struct declare_code {
    int key;        /* LUA_NOREF: the message's own key */
    int initial;    /* LUA_NOREF: an empty table */
    int reset;      /* LUA_NOREF: none */
    int on_error;   /* LUA_NOREF: a word */
    int *handlers;  /* one per declaration.types */
    int *commands;  /* one per declaration.commands */
    int *deadlines; /* one per declaration.deadlines */
    int *messages;  /* two per declaration.steps: its own, its compensation's */
    int on_end;     /* LUA_NOREF: none */
};

/** Filled by declare_end; memory comes from the arena, references belong to
 * the Lua state. */
struct declare_set {
    struct arena *arena; /* set by the caller, who frees it */
    const char *dialect; /* set by the caller: picks texts per dialect */
    int partitions;      /* set by the caller */
    struct failure_policy policy; /* set by the caller: of those without one */
    struct declaration *items;
    struct declare_code *code; /* one per item */
    size_t count;              /* consumers; aggregates stand behind them: */
    size_t total;
    struct event_types event_types;
    struct publishers publishers;
    int **steps; /* of each event type: functions, from the oldest revision */
    const char **warnings; /* NULL-terminated */
};

/** Fills the native functions and loads `moontide`. */
void declare_begin(lua_State *L);

/** Takes the `count` values that the file's chunk returned from the top. */
void declare_file(lua_State *L, const char *file, int count);

/** Checks the set as a whole and fills it. */
void declare_end(lua_State *L, struct declare_set *set);

#endif
