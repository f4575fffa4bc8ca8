/*
 * Saga steps -- the state machine of an orchestrated saga (design 5): which
 * command goes out next, what a reply, silence or an operator's word means, and
 * what is undone in which order. It knows no database and no script: the caller
 * loads the rows, tells what has happened, and carries out the turn.
 *
 * Steps run one after the other, so at most one command or compensation awaits
 * an answer at any time, and one deadline is enough. Which way a saga goes is
 * not kept anywhere: its rows say it.
 */
#ifndef HOST_MODEL_SAGA_STEPS_H
#define HOST_MODEL_SAGA_STEPS_H

#include "base/arena.h"
#include "base/uuid.h"
#include "consumer/policy.h"

/** A command that is sent, and what answers it. */
struct saga_step_message {
    struct text to;      /* publisher */
    struct text command; /* type of the message */
    const struct text *succeeds;
    size_t nsucceeds; /* 0: it is done once it is staged */
    int64_t timeout_us;
};

/** A declared step. Names and types are distinct within a declaration. */
struct saga_step_rule {
    struct text name;
    bool pivot;     /* nothing is undone once it has succeeded */
    bool retriable; /* behind the pivot: sent until it has succeeded */
    struct saga_step_message forward;
    const struct text *fails;
    size_t nfails;
    bool compensated;
    struct saga_step_message back;
};

enum saga_step_state {
    SAGA_STEP_SENT,
    SAGA_STEP_OVERDUE, /* pivot or later: sent again, or declined so far */
    SAGA_STEP_SUCCEEDED,
    SAGA_STEP_FAILED,       /* declined: nothing has happened */
    SAGA_STEP_TIMED_OUT,    /* it may have happened */
    SAGA_STEP_COMPENSATING, /* the compensation was sent */
    SAGA_STEP_STUCK,        /* and sent again too often */
    SAGA_STEP_COMPENSATED,
};

#define SAGA_STEP_STATES 8

/** "SENT" ...: the column's text. */
const char *saga_step_state_word(enum saga_step_state state);
/** False when it is none of the words. */
bool saga_step_state_parse(struct text word, enum saga_step_state *state);

/** Place of a step that is not declared. */
#define SAGA_STEP_GONE SIZE_MAX

/** A row of SAGA_STEPS: one round of a step. Times are 0 where there is none.
 * A round after the first stands for a success that was no longer awaited. */
struct saga_step_row {
    struct uuid id;
    struct text name;
    size_t step; /* among the rules; SAGA_STEP_GONE: only of rows at rest */
    int round;   /* from 1 */
    enum saga_step_state state;
    struct uuid command_id, compensation_id;
    bool has_compensation_id;
    int sends, compensation_sends;
    struct text message; /* JSON of what awaits its answer, else NULL */
    struct text reason;  /* why it failed, or NULL */
    int64_t deadline_at, sent_at, answered_at;
    int64_t compensation_sent_at, compensated_at;
    bool made, changed; /* since it was loaded */
};

/** An instance's steps. Rows and texts live in `arena`. */
struct saga_steps {
    const struct saga_step_rule *rules;
    size_t nrules;
    struct retry_policy retry; /* of resends */
    struct uuid instance;
    bool ended; /* the instance is completed */
    struct arena *arena;
    int64_t now;
    struct saga_step_row *rows; /* of a step: by round */
    size_t nrows;
};

/** What goes out: under the row's command_id, or its compensation_id. */
struct saga_steps_send {
    size_t row;
    bool compensation;
    bool again; /* it was sent before, under the same id */
};

enum saga_steps_alarm {
    SAGA_STEPS_SILENT,   /* no answer of the pivot or a later step: resent */
    SAGA_STEPS_DECLINED, /* a step behind the pivot: to be resent */
    SAGA_STEPS_STUCK,    /* resent as often as the policy says */
    SAGA_STEPS_BEYOND,   /* the pivot has succeeded after all was undone */
};

struct saga_steps_alert {
    size_t row;
    enum saga_steps_alarm alarm;
};

enum saga_steps_end {
    SAGA_STEPS_GOES_ON,
    SAGA_STEPS_COMPLETED,
    SAGA_STEPS_CANCELLED,
};

/** What is to be done. Rows are changed already; lists live in the arena. */
struct saga_steps_turn {
    bool taken; /* false: nothing has changed, it was known or not expected */
    struct saga_steps_send *sends; /* in this order */
    size_t nsends;
    struct saga_steps_alert *alerts;
    size_t nalerts;
    bool deadline_changed;
    int64_t wait_us;     /* until the new one from now on */
    int64_t deadline_at; /* the new one by `now`, 0: none is left */
    enum saga_steps_end end;
};

/** A message that may answer a command. */
struct saga_steps_reply {
    struct text type;
    /* what it says itself that it answers; NULL: nothing */
    const struct uuid *command_id; /* of a command or compensation, for sure */
    const struct uuid *cause;      /* perhaps of one */
};

/** Sends the first command. Not taken when the saga has steps already. */
void saga_steps_start(struct saga_steps *steps, struct saga_steps_turn *turn);

/** Takes a success, a refusal or a confirmation. */
void saga_steps_reply(struct saga_steps *steps,
                      const struct saga_steps_reply *reply,
                      struct saga_steps_turn *turn);

/** What is awaited has not come in time. */
void saga_steps_overdue(struct saga_steps *steps, struct saga_steps_turn *turn);

/** An operator has what is awaited sent again now. */
void saga_steps_retry(struct saga_steps *steps, struct saga_steps_turn *turn);

/** An operator says that what is awaited of the step was done. */
void saga_steps_confirm(struct saga_steps *steps, struct text name,
                        struct saga_steps_turn *turn);

/** The row whose command or compensation awaits an answer, NULL: none. */
struct saga_step_row *saga_steps_awaited(const struct saga_steps *steps);

/** The step whose answer the type is, SAGA_STEP_GONE: of none. */
size_t saga_steps_of_type(const struct saga_step_rule *rules, size_t nrules,
                          struct text type);

/** What the row sends, or has sent last. */
const struct saga_step_message *
saga_steps_message(const struct saga_steps *steps,
                   const struct saga_steps_send *send);

#endif
