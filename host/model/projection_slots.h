/*
 * Projection slots -- the keys of a projection's batch, one slot each, and what
 * the database has of them when the batch begins. What becomes of a slot is
 * model/projection.c's.
 */
#ifndef HOST_MODEL_PROJECTION_SLOTS_H
#define HOST_MODEL_PROJECTION_SLOTS_H

#include "base/map.h"
#include "model/made_anew.h"
#include "model/projection_topic.h"
#include "model/read_model_table.h"

/** A chain of a slot's applied units ends here. */
#define PROJECTION_NO_UNIT SIZE_MAX

/** One key of the batch. Its state, once a handler has looked, lives with the
 * handlers under the slot's number. Slices live in the batch's arena. */
struct projection_slot {
    struct text key;
    bool stored;         /* the table has it, as of the start of the batch */
    bool stale;          /* ... from before the rebuild: it counts as absent */
    struct uuid read_id; /* message_id that was read */
    struct text json;    /* the state that was read */
    struct db_value *fields; /* the fields that were read */
    uint64_t unknown;        /* those that cannot be compared */
    bool present;            /* exists after what was applied so far */
    bool filled;             /* the handlers hold its state */
    bool dirty;              /* has to be written */
    size_t last_unit;        /* newest applied unit, or ..._NO_UNIT */
    size_t changed_by;       /* newest unit that changed it, or ..._NO_UNIT */
    size_t entry; /* in the topic, of its newest state, or ..._NONE */
};

/** All zero at first. */
struct projection_slots {
    struct projection_slot *slots;
    size_t count;
    struct made_anew made; /* by the replay under way */

    /* for projection_slots.c */
    struct map keys; /* key -> slot number */
    size_t capacity;
    size_t *asked; /* slots whose epochs are asked for */
    size_t asked_capacity;
};

void projection_slots_begin(struct projection_slots *slots);

/** The number of the key's slot, which is made when there is none. The key is
 * borrowed until the next begin. */
size_t projection_slots_of(struct projection_slots *slots, struct text key);

/** Reads what is stored of them, with so many fields; in a replay
 * (replay_epoch > 0) also what of that the replay has made. Statuses as
 * db_lookup. */
enum status projection_slots_read(struct projection_slots *slots,
                                  const struct read_model_table *table,
                                  size_t nfields, int64_t replay_epoch,
                                  struct db *db, struct arena *arena,
                                  struct diag *diag) MUST_CHECK;

void projection_slots_free(struct projection_slots *slots);

#endif
