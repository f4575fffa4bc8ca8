/*
 * Help -- the text of --help, made from the table of verbs.
 */
#ifndef HOST_CLI_HELP_H
#define HOST_CLI_HELP_H

#include "cli/cli.h"

/** Help of a verb, or of the program when `verb` is NULL. */
void help_print(const struct cli *cli, const struct cli_verb *verb, FILE *out);
void help_version(const struct cli *cli);

#endif
