/*
 * Status word -- pieces of the sentences of a status report. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_WORD_H
#define HOST_RUN_STATUS_WORD_H

#include "base/buffer.h"
#include "consumer/registry.h"
#include "run/status.h"

/** "5 s", "3 min", "2 h", "4 d". */
void status_word_age(struct buffer *out, int64_t us);

/** "1 message", "2 messages". */
void status_word_count(struct buffer *out, int64_t count, const char *what);

bool status_word_is_in(const struct status_consumer *consumer,
                       enum consumer_state state);

/** Adds the sentence to a list in the arena, and empties it. */
void status_word_keep(struct arena *arena, const char ***list, size_t *count,
                      struct buffer *sentence);

#endif
