/*
 * Letter -- an undelivered message as an operator sees it: one message for one
 * key. A message whose keys are not known lies in several partitions and is
 * one letter all the same. This module only reads.
 */
#ifndef HOST_CONSUMER_LETTER_H
#define HOST_CONSUMER_LETTER_H

#include "base/arena.h"
#include "db/catalog.h"
#include "db/db.h"
#include "topic/message.h"

/**
 * Which letters are meant; all that is set must hold. Without id, position and
 * status only those that failed themselves are: what waits behind another
 * message is not.
 */
struct letter_filter {
    const char *consumer_id; /* NULL: of any consumer */
    const char *id;          /* of its row or of its message, lower case */
    int64_t position;        /* 0: any */
    const char *type;        /* of the message */
    const char *key;
    const char *error;       /* a part of the reason */
    const char *status;      /* FAILED, DEAD_LETTER ... */
    int64_t recorded_before; /* 0: any time */
    int64_t recorded_after;
};

struct letter_row {
    const char *id;
    int partition;
};

struct letter {
    const char *consumer_id;
    const char *consumer_type;
    const char *consumer;
    const char *source;
    int64_t position;
    struct text key;
    bool unresolved;
    const char *status;
    int64_t failures;
    int64_t next_retry_at; /* 0: at once, or never */
    int64_t recorded_at;
    const char *reason; /* NULL: it has not failed itself */
    const char *type;   /* of the message; "" when it cannot be told */
    /* LETTER_WHOLE: position 0 when there is no copy that can be read */
    struct message message;
    struct letter_row *rows; /* more than one when unresolved */
    size_t nrows;
};

struct letters {
    struct letter *items;
    size_t count;
    int64_t total; /* that match, `items` may be fewer */
};

enum letter_detail {
    LETTER_BARE,  /* no type */
    LETTER_TYPE,  /* no message */
    LETTER_WHOLE, /* everything */
};

/** Reads the first `limit` letters by consumer and position, into `arena`. */
enum status letters_read(struct db *db, const struct catalog *catalog,
                         const struct letter_filter *filter, size_t limit,
                         enum letter_detail detail, struct arena *arena,
                         struct letters *letters, struct diag *diag) MUST_CHECK;

/** A stretch of what one consumer has of one topic. Borrowed. */
struct letter_span {
    const char *consumer_id;
    const char *source;
    int64_t after, through; /* positions */
};

/** Cuts a span to about `rows` rows, of the status of that word (NULL: any):
 * all of each message. */
enum status letter_span_cut(struct db *db, const struct catalog *catalog,
                            struct letter_span *span, const char *word,
                            int64_t rows, struct diag *diag) MUST_CHECK;

/** The letters of a span by position; filter->consumer_id is not looked at. */
enum status letter_span_read(struct db *db, const struct catalog *catalog,
                             const struct letter_filter *filter,
                             const struct letter_span *span,
                             enum letter_detail detail, struct arena *arena,
                             struct letters *letters,
                             struct diag *diag) MUST_CHECK;

/** Whether it says more than which consumer is meant. */
bool letter_filter_narrows(const struct letter_filter *filter);

/** The ids of all rows of a letter, behind those that are there. */
size_t letter_ids(const struct letter *letter, struct text *ids, size_t count);

/** Whether it failed itself, rather than only waits behind another one. */
bool letter_failed(const struct letter *letter);

#endif
