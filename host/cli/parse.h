/*
 * Parse -- the command line against the table of verbs, with getopt_long.
 * Global options may stand before or after the verb.
 */
#ifndef HOST_CLI_PARSE_H
#define HOST_CLI_PARSE_H

#include "cli/cli.h"

enum parse_outcome {
    PARSE_RUN,     /* cli->verb is to be run */
    PARSE_NOTHING, /* no verb was given */
    PARSE_HELP,    /* cli->verb says of what, NULL: the program */
    PARSE_VERSION,
};

/** Fills `cli` from argv. USAGE names the option, verb or argument at fault
 * and the nearest known one. Owned by `cli`: parse_free. */
enum status parse_command_line(int argc, char **argv, struct cli *cli,
                               enum parse_outcome *outcome,
                               struct diag *diag) MUST_CHECK;
void parse_free(struct cli *cli);

/** The verb of that name. USAGE names the nearest one. */
enum status parse_verb(const char *name, const struct cli_verb **verb,
                       struct diag *diag) MUST_CHECK;

#endif
