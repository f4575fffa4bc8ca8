/*
 * NDJSON event -- one line of text as an event, for the event store or for the
 * capture topic. Knows nothing of files.
 */
#ifndef HOST_CLI_NDJSON_EVENT_H
#define HOST_CLI_NDJSON_EVENT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "topic/append.h"

/** Which fields a line has: those of `append`, or those of `emit`. */
enum ndjson_kind { NDJSON_APPEND, NDJSON_EMIT };

/**
 * Reads the line's object. Slices point into `line`, or into `arena` where a
 * string has escapes. `scratch` is overwritten.
 * INVALID: what is wrong, without the name of the file and the line.
 */
enum status ndjson_event_read(enum ndjson_kind kind, struct text line,
                              struct arena *arena, struct buffer *scratch,
                              struct append_event *event,
                              struct diag *diag) MUST_CHECK;

#endif
