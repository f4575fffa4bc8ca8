/*
 * NDJSON event -- one line of text as an event. Knows nothing of files.
 */
#ifndef HOST_CLI_NDJSON_EVENT_H
#define HOST_CLI_NDJSON_EVENT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "topic/append.h"

/**
 * Reads the line's object. Slices point into `line`, or into `arena` where a
 * string has escapes. `scratch` is overwritten.
 * INVALID: what is wrong, without the name of the file and the line.
 */
enum status ndjson_event_read(struct text line, struct arena *arena,
                              struct buffer *scratch,
                              struct append_event *event,
                              struct diag *diag) MUST_CHECK;

#endif
