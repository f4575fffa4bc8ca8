/*
 * Operate -- what an operator does to a consumer: pause, resume, unsubscribe.
 * Which verb does what in which state is decided in consumer/transition.c.
 *
 * Each verb is one transaction that holds the consumer's checkpoints from its
 * start, so it waits for the batch in hand of a running host, and no later
 * batch begins before it has ended. A consumer that very many messages halted
 * is resumed in several, and stays halted until the last of them. A repeat
 * changes nothing. Nothing is
 * printed here: the result says what changed.
 */
#ifndef HOST_CONSUMER_OPERATE_H
#define HOST_CONSUMER_OPERATE_H

#include "base/arena.h"
#include "base/clock.h"
#include "consumer/registry.h"
#include "schema/names.h"

#include <signal.h>

/** Borrowed. */
struct operate_env {
    struct db *db;
    const struct catalog *catalog;
    const struct names *names;
    const struct clock *clock;
    bool notify; /* whoever waits is told of a change */
    /** When it is set, no further transaction is begun: STOPPED. NULL: nobody
     * asks for that. */
    const volatile sig_atomic_t *stop;
    /** Names of the consumers that the scripts declare, ended by NULL; NULL
     * when they could not be loaded. */
    const char *const *declared;
    /** The type of each, in the same order. */
    const char *const *types;
    /** The topic that each of them reads. */
    const char *const *sources;
    /** What each of them declares; NULL: nothing that is compared. */
    const struct fingerprint *const *fingerprints;
};

/** What a verb changed. operate_result_free. */
struct operate_result {
    struct arena arena; /* holds the texts */
    const char *type;
    const char *name;
    bool changed;
    const char *unchanged; /* why nothing changed; follows the name */
    enum consumer_state before, after;
    enum halt_reason reason_before, reason_after;
    bool gone;                  /* the consumer has no row any more */
    int64_t retried;            /* messages that are tried again at once */
    int64_t undelivered;        /* rows removed of messages not delivered */
    int64_t skipped;            /* skips recorded; by unsubscribe: removed */
    int64_t checkpoints;        /* rows removed */
    const char *unread;         /* topic of read models, read by nobody now */
    int64_t incomplete_through; /* the gap that was accepted; 0: none */
    bool declaration_accepted;  /* taken over as the scripts have it now */
};

struct operate_resume {
    bool past;      /* over the messages that halted it */
    bool every_key; /* with past: for every key of them */
    bool accept;    /* in spite of missing history or a new declaration */
};

struct operate_unsubscribe {
    const char *source; /* NULL: from all */
    bool force;         /* also when it is declared and not paused */
};

/*
 * Statuses beside the database's: USAGE when no consumer has that name (with
 * the nearest one that has); REFUSED as the table of transitions says. On
 * anything but OK nothing was changed (LOST: or all of it was; doing it again
 * is safe) and no result is owed.
 */
enum status operate_pause(const struct operate_env *env, const char *consumer,
                          struct operate_result *result,
                          struct diag *diag) MUST_CHECK;
enum status operate_resume(const struct operate_env *env, const char *consumer,
                           const struct operate_resume *how,
                           struct operate_result *result,
                           struct diag *diag) MUST_CHECK;
enum status operate_unsubscribe(const struct operate_env *env,
                                const char *consumer,
                                const struct operate_unsubscribe *how,
                                struct operate_result *result,
                                struct diag *diag) MUST_CHECK;
void operate_result_free(struct operate_result *result);

#endif
