/*
 * Saga deadlines -- what the handlers of a saga set, move and cancel, kept
 * until the batch ends and written together in the processing transaction, with
 * an undo for the call that failed. Each name stands once per saga: setting it
 * again moves it.
 *
 * Why none fires on a later instance of the same saga id: completing or
 * deleting an instance deletes its deadlines in the same transaction; every
 * setting has an id of its own, and firing deletes the row by that id and must
 * find it, so a page in flight whose row was deleted or moved meanwhile does
 * not commit; a fenced transaction has set nothing; and of what is left all the
 * same (an instance whose row somebody deleted by hand) the row tells whose it
 * was: it carries the instance's id, which the saga compares before it runs a
 * handler.
 */
#ifndef HOST_MODEL_SAGA_DEADLINE_H
#define HOST_MODEL_SAGA_DEADLINE_H

#include "base/clock.h"
#include "base/status.h"
#include "base/uuid.h"
#include "db/catalog.h"
#include "db/db.h"
#include "schema/names.h"

struct saga_deadlines; /* model/saga_deadline.c */

/** All is borrowed. */
struct saga_deadlines_options {
    const char *saga_type; /* the consumer's name */
    struct db *db;         /* whose clock counts, see consumer/deadline.h */
    const struct catalog *catalog;
    const struct names *names;
    struct uuid_source *ids;
    const struct clock *clock;
    int64_t payload_limit; /* bytes, limits.payload */
};

struct saga_deadlines *
saga_deadlines_new(const struct saga_deadlines_options *options);
void saga_deadlines_free(
    struct saga_deadlines *deadlines); /* NULL is allowed */

/** Whose deadline. Copied. */
struct saga_deadline_of {
    struct text saga_id;
    struct uuid instance; /* id of its row in SAGA_INSTANCES */
    int partition;
};

/** What is set. Copied. */
struct saga_deadline_set {
    struct text name;
    bool relative;        /* at_us is a duration from now on */
    int64_t at_us;        /* else microseconds since 1970 */
    int64_t least_us;     /* due so long from now on at the earliest; 0: any */
    struct text payload;  /* JSON; NULL data: none */
    struct text metadata; /* JSON object, as an emitted event would have it */
};

/** Sets or moves. INVALID: a name that is empty or above 255 characters, a time
 * outside of the years 0 to 9999, a payload above the limit. *due_at (may be
 * NULL) is when it fires. Other statuses are the database's, whose clock is
 * asked now and then. */
enum status saga_deadlines_set(struct saga_deadlines *deadlines,
                               const struct saga_deadline_of *of,
                               const struct saga_deadline_set *set,
                               int64_t *due_at, struct diag *diag) MUST_CHECK;
/** Takes it back; there need not be any. */
void saga_deadlines_cancel(struct saga_deadlines *deadlines,
                           const struct saga_deadline_of *of, struct text name);
/** Takes all of a saga back, stored ones too: it is completed, or its instance
 * is deleted. What is set after that stays. */
void saga_deadlines_clear(struct saga_deadlines *deadlines,
                          const struct saga_deadline_of *of);
/** Whether the name was set, moved or taken back in this batch, by calls that
 * were not undone: what was stored of it before it is out of date. */
bool saga_deadlines_changed(const struct saga_deadlines *deadlines,
                            struct text saga_id, struct text name) MUST_CHECK;
/** Removes the row that was fired (struct unit's deadline), or that is of no
 * use any more, before anything that its handler set under the same name. */
void saga_deadlines_fired(struct saga_deadlines *deadlines,
                          const struct uuid *id);

void saga_deadlines_batch_begin(struct saga_deadlines *deadlines);
/** Starts a call; what it changes can be undone until the next one. */
void saga_deadlines_call_begin(struct saga_deadlines *deadlines);
void saga_deadlines_call_undo(struct saga_deadlines *deadlines);
/** Queues everything: four statements at most, whatever the batch's size is.
 * The commit is a CONFLICT when a row that was fired is gone. */
enum status saga_deadlines_send(struct saga_deadlines *deadlines, struct db *db,
                                struct diag *diag) MUST_CHECK;

/** When the earliest one is due that was set since this was asked last (also in
 * batches that did not commit), INT64_MAX for none. */
int64_t saga_deadlines_earliest(struct saga_deadlines *deadlines);

/** Queues the delete of all deadlines of some sagas, for who deletes instances
 * outside of a batch, in the same transaction. */
enum status saga_deadlines_delete(struct db *db, const struct catalog *catalog,
                                  const char *saga_type,
                                  const struct text *saga_ids, size_t count,
                                  struct diag *diag) MUST_CHECK;

#endif
