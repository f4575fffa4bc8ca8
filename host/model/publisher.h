/*
 * Publisher -- a destination of messages as a script declares it: the name that
 * ctx:publish and the steps of sagas use, which is the outbox's route.
 */
#ifndef HOST_MODEL_PUBLISHER_H
#define HOST_MODEL_PUBLISHER_H

#include "base/text.h"

/** Owned by the script. */
struct publisher {
    const char *name;
    const char *file;
    int line;
    const char *to; /* "kafka:payments"; NULL: a function of the script */
};

struct publishers {
    const struct publisher *items; /* sorted by name */
    size_t count;
};

/** NULL when none has that name. */
const struct publisher *publishers_find(const struct publishers *publishers,
                                        struct text name);

/** The name that is most like this one, or NULL. */
const char *publishers_nearest(const struct publishers *publishers,
                               const char *name);

#endif
