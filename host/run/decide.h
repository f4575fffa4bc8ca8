/*
 * Decide -- given some events of an aggregate, when a command comes, then what:
 * the pure check of the testing kit. It runs the file of the declaration in a
 * fresh sandboxed state, through the same calls as the host, without a
 * database.
 */
#ifndef HOST_RUN_DECIDE_H
#define HOST_RUN_DECIDE_H

#include "script/script.h"

/** One command that comes after events. Borrowed. */
struct decide_command {
    struct text aggregate; /* the declaration's name */
    struct text id;        /* of the aggregate */
    struct text name;
    struct text args;            /* JSON */
    struct text metadata;        /* a JSON object, or NULL data */
    struct append_event *events; /* what has happened, in order */
    size_t count;
};

/**
 * Appends {"outcome":"accepted","events":[...],"state":...} or
 * {"outcome":"rejected","reason":...,"details":...,"state":...}; the state is
 * the one after the new events. FAILED: the script's fault, among them a
 * command that changes the state. INVALID: an event is not as its type says.
 * USAGE: no such aggregate or command.
 */
enum status decide_run(const struct script_options *options,
                       const struct decide_command *command, struct buffer *out,
                       struct diag *diag) MUST_CHECK;

#endif
