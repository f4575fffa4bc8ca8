/*
 * Outage -- the trouble that the workers of a host have with their database, in
 * one line for each kind of it, with the number of workers, however many there
 * are: they lose it together. Decides only what is said, and when; the
 * supervisor tells it what workers say, and writes the lines.
 *
 * Times are clock_monotonic's.
 */
#ifndef HOST_RUN_OUTAGE_H
#define HOST_RUN_OUTAGE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Others have this long to meet the same before the line is written. */
#define OUTAGE_GATHER_US INT64_C(300000)

#define OUTAGE_KINDS     4 /* by status: lost, busy, conflicts, any other */
#define OUTAGE_LINE_SIZE (DIAG_MESSAGE_SIZE + 64)

struct outage_kind {
    int workers;   /* that have met it; 0: nobody */
    int64_t since; /* when the first one did */
    bool told;
    char why[DIAG_MESSAGE_SIZE]; /* of the first one */
};

/** Starts as all zero. */
struct outage {
    struct outage_kind kinds[OUTAGE_KINDS];
    int now; /* workers that are in trouble */
    int met; /* ... or have been since somebody was */
};

/** A worker that was well is in trouble, and tries again. */
void outage_begin(struct outage *outage, enum status status, struct text why,
                  int64_t now);
/** One that was in trouble is well, or gone. True when nobody is in trouble any
 * more: the rest is to be told with outage_line, and then outage_over. */
bool outage_end(struct outage *outage);

/** The next line that is due of a host with so many workers; false: none is. At
 * INT64_MAX all are. */
bool outage_line(struct outage *outage, int workers, int64_t now,
                 char line[OUTAGE_LINE_SIZE]);
/** The line with which it ends; all starts anew. */
void outage_over(struct outage *outage, int workers,
                 char line[OUTAGE_LINE_SIZE]);

#endif
