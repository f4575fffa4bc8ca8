/*
 * Operate JSON -- what operator verbs found and changed, as the command line
 * prints it with --json and as the testing kit gives it.
 */
#ifndef HOST_RUN_OPERATE_JSON_H
#define HOST_RUN_OPERATE_JSON_H

#include "base/buffer.h"
#include "consumer/operate_letters.h"
#include "run/rebuild_run.h"

/** An object, without a line end. */
void operate_json_result(struct buffer *out,
                         const struct operate_result *result);

/** What rebuild_run did; an object, without a line end. */
void operate_json_rebuild(struct buffer *out, const struct rebuild_order *order,
                          const struct rebuild_report *report);

/** `whole`: with the messages themselves. */
void operate_json_letters(struct buffer *out, const struct letters *letters,
                          bool whole);

/** What operate_retry or, with `deleted`, operate_delete changed. */
void operate_json_change(struct buffer *out,
                         const struct letters_result *result, bool deleted);

#endif
