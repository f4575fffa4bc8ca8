/*
 * Log limit -- keeps a log readable while something goes wrong again and
 * again. Of lines that are alike (log.h says which) the first few pass, then
 * one every LOG_LIMIT_PAUSE, which says how many were left out before it. What
 * was left out last is kept and comes up by itself, so that nothing is lost
 * that a reader would look for. Threads may share one. Writes nothing: log.c
 * does.
 */
#ifndef HOST_BASE_LOG_LIMIT_H
#define HOST_BASE_LOG_LIMIT_H

#include "base/buffer.h"
#include "base/clock.h"

#include <stdbool.h>

#define LOG_LIMIT_FIRST 5                   /* lines that pass at once */
#define LOG_LIMIT_PAUSE (30 * CLOCK_SECOND) /* between those after them */
#define LOG_LIMIT_QUIET (60 * CLOCK_SECOND) /* after it all is as at first */
#define LOG_LIMIT_KINDS 256                 /* of lines, told apart at once */

struct log_limit; /* base/log_limit.c */

/** A line, so that it can be written later. `about` is its pairs, encoded. */
struct log_line {
    int level;
    int64_t at;       /* when it happened: it is written later */
    int64_t position; /* 0: none */
    struct buffer message;
    struct buffer consumer, topic, message_id, fields; /* data NULL: none */
};

struct log_limit *log_limit_new(void);
void log_limit_free(struct log_limit *limit); /* NULL is allowed */

/**
 * Whether a line of the kind `id` passes now (monotonic); then *left_out is how
 * many did not since the last that did. Otherwise it is owed log_limit_keep.
 */
bool log_limit_pass(struct log_limit *limit, uint64_t id, int64_t now,
                    int64_t *left_out);
/** Gives the line that did not pass; its buffers are taken over. */
void log_limit_keep(struct log_limit *limit, uint64_t id,
                    struct log_line *line);
/**
 * Takes the next kept line whose time has come, or any when `all`; *left_out
 * is how many others were left out before it. False when there is none; else
 * log_line_free is owed.
 */
bool log_limit_next(struct log_limit *limit, int64_t now, bool all,
                    struct log_line *line, int64_t *left_out);

/** All is as at first. What is kept is dropped: log_tell, with `all`, comes
 * before it. */
void log_limit_forget(struct log_limit *limit);

void log_line_free(struct log_line *line);

#endif
