/*
 * NDJSON -- reads events, one JSON object per line, from a file descriptor.
 *
 * Fields of `append`: aggregate_type, aggregate_id, type, payload; optionally
 * id, metadata, revision, occurred_at, expected (a sequence number, "any" or
 * "none"). Of `emit`: type, payload; optionally key, id, metadata, revision,
 * occurred_at. Empty lines are skipped; CR LF and a last line without an end
 * are fine. What an event points to are the bytes of its line: a payload is
 * never copied. Writing is topic/append.h and topic/capture.h.
 */
#ifndef HOST_CLI_NDJSON_H
#define HOST_CLI_NDJSON_H

#include "cli/ndjson_event.h"

struct ndjson; /* cli/ndjson.c */

/** Lines of that kind. `name` goes into the errors; it and the descriptor are
 * borrowed. A line may have `payload_limit` bytes and 64 KiB for the rest. */
struct ndjson *ndjson_open(enum ndjson_kind kind, int fd, const char *name,
                           int64_t payload_limit);
void ndjson_close(struct ndjson *reader); /* NULL is allowed */

/**
 * Reads the next event; *more is false at the end. Its slices are valid until
 * ndjson_release.
 * INVALID: a line is wrong; the message has name, line and what is wrong.
 * FAILED: the descriptor cannot be read. STOPPED: a signal came while waiting.
 */
enum status ndjson_next(struct ndjson *reader, struct append_event *event,
                        bool *more, struct diag *diag) MUST_CHECK;

/** Gives the bytes of all events that were read back. */
void ndjson_release(struct ndjson *reader);

/** Number of the last line that was read, from 1. */
int64_t ndjson_line(const struct ndjson *reader);

/** Bytes of the events since the last release. */
size_t ndjson_held(const struct ndjson *reader);

#endif
