/*
 * Read, materialized -- the part of `read` that computes one read model from
 * its messages and says where the stored one differs.
 */
#ifndef HOST_CLI_READ_MATERIALIZE_H
#define HOST_CLI_READ_MATERIALIZE_H

#include "cli/cli.h"
#include "model/declaration.h"

/** Of the key in cli->args[1]. REFUSED: the stored one differs; FAILED: there
 * is none, or a handler failed. */
enum status read_materialize(struct cli *cli, struct application *app,
                             const struct declaration *declaration,
                             struct diag *diag) MUST_CHECK;

#endif
