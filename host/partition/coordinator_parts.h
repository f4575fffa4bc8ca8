/*
 * Coordinator parts -- what the files of partition/coordinator.h share: what a
 * look has decided (coordinator.c), for acting on it (coordinator_act.c).
 */
#ifndef HOST_PARTITION_COORDINATOR_PARTS_H
#define HOST_PARTITION_COORDINATOR_PARTS_H

#include "partition/coordinator.h"

struct coordinator_change {
    struct coordinator_consumer *consumer;
    int partition;
    bool takes;         /* else it is handed over */
    int64_t generation; /* as it was seen */
    bool lapsed;        /* who held it has not let go of it */
};

/** Says when the next look is; the first of others lapses in so long. */
void coordinator_look_again(struct coordinator *k, int64_t lapses);

#endif
