/*
 * Duties -- the supervisor's work with the database, on a thread of its own so
 * that the loop never waits for it: heartbeats of all workers that live, the
 * high-water marks, the retention of captured events, and the end of instances
 * that died, with the attempts that are theirs. It runs no script.
 *
 * All functions here belong to the loop's thread. The thread and the loop
 * share what is behind one mutex, and nothing else.
 */
#ifndef HOST_RUN_DUTIES_H
#define HOST_RUN_DUTIES_H

#include "base/uuid.h"
#include "consumer/charge.h"
#include "run/script_record.h"
#include "run/settings.h"

#include <uv.h>

struct duties; /* run/duties.c */

/** What the loop hears, on its own thread. */
struct duties_events {
    /** The mark has moved: there may be something to apply. */
    void (*moved)(void *arg);
    /** Its thread has ended and the handle is closed: duties_close may come. */
    void (*ended)(void *arg);
    void *arg;
};

/** Starts the thread. */
enum status duties_open(uv_loop_t *loop, const struct settings *settings,
                        bool quiet, const struct duties_events *events,
                        struct duties **duties, struct diag *diag) MUST_CHECK;

/** Whose heartbeats are due, as of now. It is to be said again before the next
 * heartbeat, or there is none: nobody vouches for them then. Gives when the
 * last one began that has reached the database (monotonic; 0: none). */
int64_t duties_vouch(struct duties *duties, const char *const *ids,
                     size_t count);

/** One that is dead. */
struct dead_worker {
    char instance[UUID_TEXT_LEN + 1];
    int number;   /* of the worker, for the log */
    bool charged; /* an attempt is to be counted: */
    struct attempt attempt;
    struct attempt_end end;
};

/** Counts its attempt, gives back its leases and deletes its row; tried again
 * until the database has answered. */
void duties_bury(struct duties *duties, const struct dead_worker *dead);

/** Whether one that is dead is not recorded yet. */
bool duties_bury_pending(struct duties *duties);

/** Writes down which version of the scripts the host has taken or refused; the
 * record's texts are taken over. While a live one was written it is said now
 * and then that the host still runs it. */
void duties_record(struct duties *duties, struct script_record *record);

/** Does what is left, once, and ends the thread; `ended` tells when. */
void duties_stop(struct duties *duties);
void duties_close(struct duties *duties);

#endif
