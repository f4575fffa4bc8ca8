/*
 * Read-model fill -- puts the read models that were there before their topic
 * was switched on into it, in batches: each that no message of the topic stands
 * for yet, under its own message_id. How far that has come is in the database,
 * so that any host goes on with it.
 */
#ifndef HOST_MODEL_READ_MODEL_FILL_H
#define HOST_MODEL_READ_MODEL_FILL_H

#include "base/clock.h"
#include "db/catalog.h"
#include "model/declaration.h"
#include "schema/names.h"

struct read_model_fill {
    const struct declaration *declaration; /* the keyed projection */
    const struct names *names;
    const struct catalog *catalog;
    const struct clock *clock;
    int partitions;
    bool notify;
};

/**
 * Fills one batch in, a transaction during which nobody applies for the
 * projection. *more is false when the topic has all of them now, or is off.
 * CONFLICT: another host was at it, too.
 */
enum status read_model_fill_batch(const struct read_model_fill *fill,
                                  struct db *db, bool *more,
                                  struct diag *diag) MUST_CHECK;

#endif
