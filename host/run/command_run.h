/*
 * Command run -- one command of an aggregate in a transaction of its own, as
 * `moontide command` and the testing kit give it: again when another writer
 * was faster, and under an id, so that a lost answer is found out.
 */
#ifndef HOST_RUN_COMMAND_RUN_H
#define HOST_RUN_COMMAND_RUN_H

#include "model/aggregate.h"
#include "run/application.h"

/** The application's aggregates on its connection; scripts are loaded. */
/** What aggregates are opened with, for commands of the application. */
struct aggregates_options command_options(struct application *app);

enum status command_open(struct application *app,
                         struct aggregates **aggregates,
                         struct diag *diag) MUST_CHECK;

/**
 * Runs and commits, for up to ten seconds in the face of other writers. A
 * command without an id is given one; every result is kept for
 * `commands.keep`. FAILED: the script's fault. Else as aggregate_dispatch;
 * CONFLICT and LOST when trying did not help.
 */
enum status command_run(struct application *app, struct aggregates *aggregates,
                        const struct aggregate_command *command,
                        struct aggregate_outcome *outcome,
                        struct diag *diag) MUST_CHECK;

/** Appends the outcome as a JSON object, see docs/command-line.md. */
void command_json(const struct aggregate_outcome *outcome, struct buffer *out);

#endif
