/*
 * Status print -- a report of run/status.h for people: what is wrong in
 * sentences, then tables.
 */
#ifndef HOST_CLI_STATUS_PRINT_H
#define HOST_CLI_STATUS_PRINT_H

#include "run/status.h"

#include <stdio.h>

/** `alone`: one consumer was asked for, and its failed messages are listed. */
void status_print(const struct status_report *report, bool alone, bool color,
                  FILE *out);

#endif
