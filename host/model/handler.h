/*
 * Handler -- how the models call the user's code. The interface lives here so
 * that models do not know Lua; script/handler_call.c implements it.
 *
 * States of keyed projections live on the other side, each in a numbered slot
 * of the batch; the model only says what to do with a slot.
 */
#ifndef HOST_MODEL_HANDLER_H
#define HOST_MODEL_HANDLER_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"
#include "consumer/failure.h"
#include "consumer/policy.h"
#include "db/value.h"
#include "model/declaration.h"
#include "topic/append.h"
#include "topic/message.h"

struct append_event; /* topic/append.h */
struct effects;      /* model/effects.h: what the running call may cause */
struct saga_steps;   /* model/saga_steps.h: an orchestrated saga's */
struct handler_sql;  /* model/handler_sql.h: SQL for the running call */

/** What one call runs with. Valid during the call only. */
struct handler_call {
    const struct declaration *declaration;
    const struct message *message;
    struct text key; /* the key it is applied for; NULL data: none */
    int partition;
    int attempt; /* from 1 */
    bool replaying;
    struct handler_sql *sql;
    struct effects *effects; /* NULL: it may cause none */
};

/** A command as an aggregate's code sees it. */
struct handler_command {
    struct text name;     /* one of the declaration's commands */
    struct text args;     /* JSON */
    struct text metadata; /* a JSON object, or NULL data */
    struct text id;       /* UUID as text */
    struct text cause;    /* UUID as text: the message or command behind it */
};

/** What it decided. Texts and events live in the arena that was given. */
struct handler_decision {
    bool rejected;
    struct text reason;
    struct text details; /* JSON, or NULL data */
    /** Without positions, and without expectations; those without an aggregate
     * are of the one that decides. Metadata are complete. */
    struct append_event *events;
    size_t count;
};

/** What a message is to a saga: itself, or one part of it. */
struct handler_part {
    size_t type; /* place in the declaration's types */
    int part;    /* of a message that is split, from 1; 0: it is whole */
};

/** Which function of a saga's declaration is called. */
enum handler_saga_function {
    HANDLER_SAGA_EVENT,    /* on[type] */
    HANDLER_SAGA_DEADLINE, /* deadlines[name] */
    HANDLER_SAGA_MESSAGE,  /* what a step or its compensation sends */
    HANDLER_SAGA_END,      /* on_end */
};

/** What a saga's code has asked of one of its deadlines. */
struct handler_deadline {
    size_t name; /* place in the declaration's deadlines */
    bool cancelled;
    bool from_now;        /* `at_us` counts from the moment it is set */
    int64_t at_us;        /* microseconds, UTC */
    struct text payload;  /* JSON, or NULL data */
    struct text metadata; /* JSON: correlation and causation ids */
};

/** One call of a saga's code, and what it did. */
struct handler_saga {
    enum handler_saga_function function;
    struct handler_part part; /* EVENT; others: of what brought it about */
    bool of_deadline;  /* MESSAGE, END: a deadline brought it about, no event */
    size_t step;       /* MESSAGE: place of the step */
    bool compensation; /* MESSAGE: of what undoes it */
    const char *outcome;            /* END */
    const struct saga_steps *steps; /* its history; NULL: it has no steps */
    size_t deadline;                /* DEADLINE: place of its name */
    struct text payload;            /* DEADLINE: JSON, or NULL data */
    int64_t due_at;                 /* DEADLINE */
    bool held; /* the slot holds the state; if not, it is filled from: */
    struct text state; /* JSON; NULL data: there is none, `initial` makes it */
    struct arena *arena; /* of what it asks for */
    /* what it did */
    struct buffer *json; /* the state after it is appended */
    bool completed;
    struct text message;                /* MESSAGE: JSON, from `arena` */
    struct handler_deadline *deadlines; /* in the order asked for */
    size_t ndeadlines;
};

/** Whether there is no event to show. */
static inline bool handler_saga_of_deadline(const struct handler_saga *saga)
{
    return saga->of_deadline || saga->function == HANDLER_SAGA_DEADLINE;
}

enum handler_outcome {
    HANDLER_CHANGED,   /* the slot holds the new state */
    HANDLER_DELETED,   /* moontide.delete: the slot is empty */
    HANDLER_UNTOUCHED, /* no handler takes what the message has become */
};

typedef void (*handler_key_fn)(void *arg, struct text key);

/**
 * Statuses: OK; FAILED (the handler's fault: *failure says why, and the host
 * may go on with other messages); anything else comes from the database
 * through `sql` and is in `diag` (the transaction is over or to be repeated).
 */
struct handler_ops {
    /** Tells the keys of a message (key function): each once, in the order
     * given. Key bytes are valid during the callback only. */
    enum status (*keys)(void *code, const struct handler_call *call,
                        handler_key_fn emit, void *arg,
                        struct failure *failure);
    /** Fills a slot with what `initial` gives (or an empty table). */
    enum status (*state_initial)(void *code, const struct handler_call *call,
                                 size_t slot, struct failure *failure);
    /** Fills a slot from stored JSON. */
    enum status (*state_decode)(void *code, const struct handler_call *call,
                                size_t slot, struct text json,
                                struct failure *failure);
    /** Runs the handler of the message's type on the state in the slot. On
     * FAILED the slot's content is undefined (refill it). */
    enum status (*apply_state)(void *code, const struct handler_call *call,
                               size_t slot, enum handler_outcome *outcome,
                               struct failure *failure, struct diag *diag);
    /** Runs the declared `apply` of an aggregate on the state in the slot. The
     * slots of aggregates are others than those of a batch: a command may run
     * inside of a handler. On FAILED the slot's content is undefined. */
    enum status (*apply_event)(void *code, const struct handler_call *call,
                               size_t slot, struct failure *failure);
    /** Lets a command decide on the state in the slot; call->message stands
     * for the command: its id and the time. FAILED also when what it gave is
     * no decision, or an event is not as its type says. */
    enum status (*command)(void *code, const struct handler_call *call,
                           size_t slot, const struct handler_command *command,
                           struct arena *arena,
                           struct handler_decision *decision,
                           struct failure *failure);
    /** What a saga's message is: a part for each function that may take it, in
     * order, none when no handler takes what it has become; from `arena`. */
    enum status (*saga_parts)(void *code, const struct handler_call *call,
                              struct arena *arena, struct handler_part **parts,
                              size_t *count, struct failure *failure);
    /** Runs a function of a saga on the state in the slot (saga, event or
     * deadline, ctx); call->key is the saga's id. A type without a handler only
     * fills the slot. On FAILED the slot's content and what was asked for are
     * undefined, and nothing was appended. */
    enum status (*saga)(void *code, const struct handler_call *call,
                        size_t slot, struct handler_saga *saga,
                        struct failure *failure, struct diag *diag);
    /** Runs the handler of a projection without state (event, ctx). */
    enum status (*apply)(void *code, const struct handler_call *call,
                         struct failure *failure, struct diag *diag);
    /** Writes the slot's state as JSON (keys sorted) to `json` (appended)
     * and its declared fields to `fields` (bytes from `arena`). */
    enum status (*state_encode)(void *code, const struct handler_call *call,
                                size_t slot, struct buffer *json,
                                struct db_value *fields, struct arena *arena,
                                struct failure *failure);
    /** What the declared on_error function says becomes of the message, which
     * has failed `failures` times. FAILED with *refused: it raised, or gave
     * none of the words. */
    enum status (*on_error)(void *code, const struct handler_call *call,
                            int failures, const struct failure *failure,
                            enum error_policy *policy, struct failure *refused);
    /** Runs the declared `reset` (ctx); call->message is of no topic. */
    enum status (*reset)(void *code, const struct handler_call *call,
                         struct failure *failure, struct diag *diag);
    /** What the script's event types ask of events that a handler has emitted:
     * fills revisions, checks payloads. Not while a handler runs. */
    enum status (*check_events)(void *code, struct append_event *events,
                                size_t count, struct failure *failure);
    /** Forgets every slot; lets the other side collect garbage. */
    void (*batch_end)(void *code);
};

/** User code as the models hold it. */
struct handler {
    const struct handler_ops *ops;
    void *code; /* struct script */
};

#endif
