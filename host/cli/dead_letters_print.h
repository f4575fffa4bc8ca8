/*
 * Dead letters print -- undelivered messages as a table, one by one with their
 * message, and as JSON.
 */
#ifndef HOST_CLI_DEAD_LETTERS_PRINT_H
#define HOST_CLI_DEAD_LETTERS_PRINT_H

#include "cli/cli.h"
#include "consumer/letter.h"
#include "consumer/operate_letters.h"

void dead_letters_print_list(struct cli *cli, const struct letters *letters,
                             int64_t now_us);
/** Each with everything, its message included. */
void dead_letters_print_whole(struct cli *cli, const struct letters *letters);
/** What retry (or delete) changed. */
void dead_letters_print_change(struct cli *cli,
                               const struct letters_result *result,
                               bool deleted);

#endif
