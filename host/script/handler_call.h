/*
 * Handler call -- the models' way into the user's code: implements
 * model/handler.h over one Lua state. One call runs at a time.
 */
#ifndef HOST_SCRIPT_HANDLER_CALL_H
#define HOST_SCRIPT_HANDLER_CALL_H

#include "model/handler.h"
#include "script/declare.h"

struct attempt_slot; /* consumer/attempt_slot.h */
struct handler_code; /* script/handler_call.c: the `code` of handler_call_ops */

struct handler_call_options {
    struct script_state *state;
    const struct declare_set *set; /* must outlive the code */
    int64_t payload;               /* limits.payload: bytes of a stored state */
    const struct log *log;         /* ctx.log; NULL: nowhere */
};

/** LIMIT or CONFIG when Lua has no memory for it. */
enum status handler_call_open(const struct handler_call_options *options,
                              struct handler_code **code,
                              struct diag *diag) MUST_CHECK;
/** Before the Lua state closes. NULL is allowed. */
void handler_call_close(struct handler_code *code);

extern const struct handler_ops handler_call_ops;

/** Every call from now on is told to the slot (borrowed), NULL: to none. */
void handler_call_watch(struct handler_code *code, struct attempt_slot *slot);

/** script_fail_next. */
void handler_call_fail_next(struct handler_code *code, const char *consumer,
                            const char *type, int times);

#endif
