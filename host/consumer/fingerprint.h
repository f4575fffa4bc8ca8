/*
 * Fingerprint -- what derives a projection's read models, in four hashes, as
 * CONSUMERS.declaration_fingerprint keeps them:
 *
 *   SOURCES,KEY,SHAPE,REVISION.CODE;SOURCES,KEY,SHAPE,REVISION.CODE
 *
 * The second four, if any, are those before the last rebuild that changed
 * them. Computed by script/fingerprint_compute.c.
 */
#ifndef HOST_CONSUMER_FINGERPRINT_H
#define HOST_CONSUMER_FINGERPRINT_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

enum fingerprint_part {
    FINGERPRINT_SOURCES, /* source, aggregates, event types */
    FINGERPRINT_KEY,     /* key and number of partitions */
    FINGERPRINT_SHAPE,   /* fields and tables */
    FINGERPRINT_CODE,    /* revision and code */
    FINGERPRINT_PARTS,
};

#define FINGERPRINT_PART_MAX 31  /* characters */
#define FINGERPRINT_MAX      255 /* characters of the column */

struct fingerprint {
    char part[FINGERPRINT_PARTS][FINGERPRINT_PART_MAX + 1];
};

/** How a declaration stands to what is stored. */
enum fingerprint_verdict {
    FINGERPRINT_EQUAL,
    FINGERPRINT_NEW,         /* nothing is stored yet */
    FINGERPRINT_OLDER_CODE,  /* history was derived by other code */
    FINGERPRINT_REBUILD_DUE, /* ... and the declared revision was raised */
    FINGERPRINT_CHANGED,     /* one of the first three differs */
};

struct fingerprint_change {
    enum fingerprint_verdict verdict;
    bool part[FINGERPRINT_PARTS]; /* which differ */
    bool reverted; /* CHANGED: to what was before the last rebuild */
};

/** "sources", "key", "shape", "code". */
const char *fingerprint_part_word(enum fingerprint_part part);

/** The fourth part; `digest` is that of base/digest.h. */
void fingerprint_set_code(struct fingerprint *fingerprint, int64_t revision,
                          const char *digest);

/** Compares with the column's text (NULL data: NULL). A text that is no
 * fingerprint counts as changed in all parts. */
struct fingerprint_change
fingerprint_compare(struct text stored, const struct fingerprint *declared);

/** The column's text once the declaration is taken over as it is: what is
 * kept of before the last rebuild stays. */
void fingerprint_accept(struct text stored, const struct fingerprint *declared,
                        char out[FINGERPRINT_MAX + 1]);

/** The column's text after a rebuild: what was stored becomes what was
 * before, unless it is the same. */
void fingerprint_rebuild(struct text stored, const struct fingerprint *declared,
                         char out[FINGERPRINT_MAX + 1]);

/** Whether all four are the same. */
bool fingerprint_equal(const struct fingerprint *a,
                       const struct fingerprint *b);

/** Appends what differs, as "its key or partitions and its stored shape
 * (fields, tables)"; "" when nothing does. */
void fingerprint_describe(const struct fingerprint_change *change,
                          struct buffer *out);

#endif
