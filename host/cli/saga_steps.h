/*
 * Saga steps -- the parts of `moontide sagas` that are about orchestrated ones:
 * the table of steps, and the words retry and confirm.
 */
#ifndef HOST_CLI_SAGA_STEPS_H
#define HOST_CLI_SAGA_STEPS_H

#include "cli/cli.h"
#include "consumer/operate.h"
#include "model/saga_steps.h"

/** Prints the table of a saga's steps; nothing when it has none. */
void cli_saga_steps_print(struct cli *cli, const struct saga_steps *steps);

/** `retry TYPE ID` and `confirm TYPE ID STEP`: USAGE when the verb has other
 * arguments. */
enum status cli_saga_steps_check(const struct cli *cli,
                                 struct diag *diag) MUST_CHECK;
/** Gives the order, and says so. The arguments were checked. */
enum status cli_saga_steps_order(struct cli *cli, const struct operate_env *env,
                                 struct diag *diag) MUST_CHECK;

#endif
