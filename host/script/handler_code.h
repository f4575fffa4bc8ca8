/*
 * Handler code -- what the files behind model/handler.h share: the Lua state,
 * the call that runs, and what must be given back when it ends. Only
 * script/handler_call.c makes one.
 */
#ifndef HOST_SCRIPT_HANDLER_CODE_H
#define HOST_SCRIPT_HANDLER_CODE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "model/handler.h"
#include "model/handler_sql.h"
#include "script/handler_call.h"
#include "script/sql_text.h"

#define HANDLER_CODE_PARAMETERS 256 /* of one statement */

/** A failure that a test has asked for (script_fail_next). */
struct handler_failure_asked {
    const char *consumer, *type; /* copies */
    int times;
};

/** The first statement or command that has failed inside of a call. */
struct handler_fault {
    char where[LIMITS_TEXT_SIZE]; /* "" none */
    char class[16];               /* of a command that failed; "" none did */
    bool permanent, waits;        /* as that of the command's failure */
};

struct handler_code {
    struct script_state *state;
    lua_State *L; /* main thread; of a call inside of a call: its thread */
    const struct declare_set *set;
    const struct log *log;
    int64_t payload;

    /* registry references, made once */
    int entries[12]; /* C functions of handler_call.c */
    int event_metatable;
    int *contexts;       /* ctx of each declaration */
    int slots;           /* states of the batch by slot + 1 */
    int aggregate_slots; /* the same of aggregates: a command may run inside of
                            a handler */
    int command_metatable; /* of the ctx of commands */
    int saga_metatable;    /* of the sagas in slots */
    struct map *types;     /* of each declaration: type -> handler */
    /* "file:line" of each declaration's functions: handlers by type, one for
     * each enum handler_entry, commands, deadlines */
    const char ***wheres;
    struct arena arena;        /* of these */
    struct attempt_slot *slot; /* told of each call; may be NULL */

    /* the call that runs; NULL in between */
    const struct handler_call *call;
    const void *event;         /* address of its event and of its ctx: what a */
    int part;                  /* of its message, from 1; 0: it is whole */
    const void *context;       /* script kept of another call differs */
    struct handler_saga *saga; /* what a saga's function is asked to do; NULL */
    const void *saga_object;   /* address of the saga it sees */
    bool decode_failed;        /* its payload or metadata could not be read */
    /* its message is of an older revision of this type, and no step splits
     * it; NULL: it is read as it is stored */
    const struct event_type *older;
    struct handler_fault fault;
    struct db_rows *rows; /* open while rows are read */

    struct db_value parameters[HANDLER_CODE_PARAMETERS];
    struct buffer scratch; /* of ctx.log */
    struct sql_texts texts;
    struct handler_failure_asked *asked;
    size_t nasked;
};

/** Closes an open result: after every protected call, for a raise may have
 * left it. */
static inline void handler_code_close_rows(struct handler_code *code)
{
    db_rows_close(code->rows);
    code->rows = NULL;
}

#endif
