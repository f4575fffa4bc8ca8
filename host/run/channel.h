/*
 * Channel -- frames between the supervisor and one worker, over a socket pair.
 *
 * A frame is the length of its body (4 bytes), and the body: a type (1 byte),
 * a number (8 bytes), a text; integers are little-endian. Each side accepts
 * only what the other one may send, with a number and a text within the bounds
 * of its type. A script may have got hold of the worker's side, so what comes
 * from there is data of a stranger.
 */
#ifndef HOST_RUN_CHANNEL_H
#define HOST_RUN_CHANNEL_H

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum channel_side { CHANNEL_SUPERVISOR, CHANNEL_WORKER };

enum channel_type {
    /* from a worker */
    CHANNEL_READY = 1,    /* it runs; number of consumers, database as shown */
    CHANNEL_FAILED = 2,   /* it ends; enum status, why */
    CHANNEL_STOPPED = 3,  /* it has given back all it had and ends */
    CHANNEL_SWITCHED = 4, /* it runs the version that it was told to; which */
    CHANNEL_KEPT = 5,     /* it does not; enum status, why */
    CHANNEL_LOADED = 6,   /* from a script check: all is good */
    CHANNEL_TROUBLE = 7,  /* the database is away; enum status, why */
    CHANNEL_WELL = 8,     /* ... and is there again */
    /* from the supervisor */
    CHANNEL_STOP = 16, /* finish the batch in hand and end */
    CHANNEL_WAKE = 17, /* look at once */
    /* take the scripts of a version, first worker of all or not, changed
     * declarations accepted or not: enum channel_switch; where they lie */
    CHANNEL_SWITCH = 18,
};

enum channel_switch {
    CHANNEL_SWITCH_FIRST = 1 << 0,
    CHANNEL_SWITCH_ACCEPT = 1 << 1,
    CHANNEL_SWITCH_ALL = CHANNEL_SWITCH_FIRST | CHANNEL_SWITCH_ACCEPT,
};

#define CHANNEL_HEAD     4
#define CHANNEL_BODY_MIN 9 /* type and number */
#define CHANNEL_TEXT_MAX (64 * 1024)

struct channel_message {
    enum channel_type type;
    int64_t number;
    struct text text; /* UTF-8 */
};

/** Bytes that have come and are no message yet. Starts as all zero. */
struct channel_reader {
    struct buffer bytes;
    size_t start; /* of what is not read yet */
};

/** Appends a frame. The message must be one that its side may send; a text
 * that is too long is cut. */
void channel_write(struct buffer *out, const struct channel_message *message);

/** Sends one frame, waiting until there is room. LOST when the other side is
 * gone. */
enum status channel_send(int fd, const struct channel_message *message,
                         struct diag *diag) MUST_CHECK;

/** Takes bytes as they came. */
void channel_reader_add(struct channel_reader *reader, const void *bytes,
                        size_t len);

/**
 * The next message that `from` has sent; *found is false when there is none
 * yet. Its text is valid until the next call with this reader. INVALID when
 * `from` does not keep to the above: nothing more can be read then.
 */
enum status channel_reader_next(struct channel_reader *reader,
                                enum channel_side from,
                                struct channel_message *message, bool *found,
                                struct diag *diag) MUST_CHECK;

void channel_reader_free(struct channel_reader *reader);

#endif
