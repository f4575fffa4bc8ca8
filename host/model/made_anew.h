/*
 * Made anew -- which read models a replay has written, as far as one process
 * knows: each with the message_id of its newest write. A stored row that has
 * it belongs to the replay, whatever became of the batch that wrote it; of
 * others their epoch is asked for (model/projection.c).
 */
#ifndef HOST_MODEL_MADE_ANEW_H
#define HOST_MODEL_MADE_ANEW_H

#include "base/arena.h"
#include "base/map.h"
#include "base/uuid.h"

#include <stdbool.h>

/** All zero at first. Fields are for made_anew.c. */
struct made_anew {
    struct map keys; /* key -> place in ids */
    struct uuid *ids;
    size_t capacity;
    struct arena arena;
    int64_t epoch;
};

/** Forgets all when the replay is another one than before. */
void made_anew_begin(struct made_anew *made, int64_t epoch);
/** Of very many keys only the first ones are remembered. */
void made_anew_remember(struct made_anew *made, struct text key,
                        const struct uuid *message_id);
bool made_anew_has(const struct made_anew *made, struct text key,
                   const struct uuid *message_id);
void made_anew_free(struct made_anew *made);

#endif
