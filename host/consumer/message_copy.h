/*
 * Message copy -- a message as text, for the message_copy column: exactly what
 * the topic stored, so that a retry applies the same bytes. Payload and
 * metadata are strings inside, because JSON inside JSON would lose white
 * space at the border; what is no valid text is kept in hexadecimal.
 */
#ifndef HOST_CONSUMER_MESSAGE_COPY_H
#define HOST_CONSUMER_MESSAGE_COPY_H

#include "base/arena.h"
#include "base/buffer.h"
#include "topic/message.h"

void message_copy_write(const struct message *message, struct buffer *out);

/** Reads a copy back; slices live in `arena`. PERMANENT when the text is no
 * message copy. */
enum status message_copy_read(struct text copy, struct arena *arena,
                              struct message *message,
                              struct diag *diag) MUST_CHECK;

/** The same of the beginning of a copy, without payload, metadata and what
 * follows them, if it reaches so far; else `copy` must be a whole one. */
enum status message_copy_read_head(struct text copy, struct arena *arena,
                                   struct message *message,
                                   struct diag *diag) MUST_CHECK;

#endif
