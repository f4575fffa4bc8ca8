/*
 * Status JSON -- a report of run/status.h as one JSON document: what `moontide
 * status --json` prints.
 */
#ifndef HOST_CLI_STATUS_JSON_H
#define HOST_CLI_STATUS_JSON_H

#include "base/buffer.h"
#include "run/status.h"

/** `alone`: one consumer was asked for, and its failed messages are listed. */
void status_json_write(const struct status_report *report, bool alone,
                       struct buffer *out);

#endif
