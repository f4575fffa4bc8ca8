/*
 * Bare, trips -- one page of the trip saga in memory: its instances, the step
 * that each awaits, and what the page does to them. The commands go out one
 * after the other, each when the one before was answered.
 */
#ifndef BENCH_BARE_TRIPS_H
#define BENCH_BARE_TRIPS_H

#include "bare.h"

#define SAGA_TYPE  "trip-saga"
#define TRIP_STEPS 3
#define TRIP_SLOTS 2048 /* more than twice a page */

struct trip_step {
    const char *name, *command;
};

static const struct trip_step trip_steps[TRIP_STEPS] = {
    {"seat", "seat.Take"}, {"bed", "bed.Take"}, {"pass", "pass.Print"}};

struct trip {
    char key[64];
    int key_size; /* 0: the slot is free */
    int stored;
    char id[37]; /* of its row */
    int64_t version, seats;
    int awaits, awaited; /* step now, and as read: 0 .. TRIP_STEPS (done) */
    char rows[TRIP_STEPS][37];     /* of its steps */
    char commands[TRIP_STEPS][37]; /* their ids */
};

static struct {
    struct trip slots[TRIP_SLOTS];
    struct trip *order[BARE_BATCH];
    int count;
} trips;

/* The trip of this page; *fresh when it is met for the first time. */
static inline struct trip *trip_of(struct slice key, int *fresh)
{
    uint32_t at = bare_fnv1a(key) & (TRIP_SLOTS - 1);
    struct trip *trip;

    *fresh = 0;
    while ((trip = &trips.slots[at])->key_size != 0) {
        if (trip->key_size == key.size &&
            memcmp(trip->key, key.data, (size_t)key.size) == 0)
            return trip;
        at = (at + 1) & (TRIP_SLOTS - 1);
    }
    if (key.size == 0 || key.size >= (int)sizeof(trip->key))
        bare_die("key", "bad length");
    memset(trip, 0, sizeof(*trip));
    memcpy(trip->key, key.data, (size_t)key.size);
    trip->key_size = key.size;
    trip->awaits = trip->awaited = -1; /* nothing is there */
    trips.order[trips.count++] = trip;
    *fresh = 1;
    return trip;
}

static inline void trips_clear(void)
{
    for (int i = 0; i < trips.count; i++)
        trips.order[i]->key_size = 0;
    trips.count = 0;
}

/* The id of a command, which is made by hashing and stands anywhere in an
 * index. */
static inline void trip_command(char out[37])
{
    static uint64_t counter;
    uint64_t mixed = ++counter * UINT64_C(0x9e3779b97f4a7c15);
    char scattered[17];

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed ^= mixed >> 27;
    snprintf(scattered, sizeof(scattered), "%016llx",
             (unsigned long long)mixed);
    bare_uuid(out);
    memcpy(out, scattered, 8);
    memcpy(out + 9, scattered + 8, 4);
}

/* A stored row of a step that awaits its answer. */
static inline void trip_awaits(struct trip *trip, const char *name)
{
    for (int i = 0; i < TRIP_STEPS; i++)
        if (strcmp(trip_steps[i].name, name) == 0)
            trip->awaits = trip->awaited = i;
}

static inline void trip_apply(struct trip *trip, const char *type,
                              const char *payload)
{
    static const char *const answers[TRIP_STEPS] = {"seat.Taken", "bed.Taken",
                                                    "pass.Printed"};

    if (strcmp(type, "trip.Booked") == 0) {
        if (trip->awaits >= 0 || trip->stored)
            return;
        trip->seats = bare_number(payload, "\"seats\":");
        trip->awaits = 0;
        bare_uuid(trip->id);
    } else if (trip->awaits >= 0 && trip->awaits < TRIP_STEPS &&
               strcmp(type, answers[trip->awaits]) == 0) {
        trip->awaits++;
    }
}

static inline int trip_ended(const struct trip *trip)
{
    return trip->awaits == TRIP_STEPS;
}

static inline int trip_changed(const struct trip *trip)
{
    return trip->awaits != trip->awaited;
}

static inline int trip_state(const struct trip *trip, char out[64])
{
    return snprintf(out, 64, "{\"seats\":%lld}", (long long)trip->seats);
}

static inline int trip_message(const struct trip *trip, char out[160])
{
    return snprintf(out, 160, "{\"seats\":%lld,\"trip\":\"%.*s\"}",
                    (long long)trip->seats, trip->key_size, trip->key);
}

static inline int trip_metadata(const struct trip *trip, int step,
                                char out[256])
{
    return snprintf(out, 256,
                    "{\"saga_id\":\"%.*s\",\"saga_type\":\"" SAGA_TYPE
                    "\",\"step\":\"%s\",\"kind\":\"command\",\"round\":1}",
                    trip->key_size, trip->key, trip_steps[step].name);
}

static inline int trip_deadline(const struct trip *trip, char out[64])
{
    return snprintf(out, 64, "{\"step\":\"%s\",\"round\":1,\"state\":\"SENT\"}",
                    trip_steps[trip->awaits].name);
}

/* What is told of the chain that a deadline is part of. */
static inline int trip_chain(const struct trip *trip, char out[256])
{
    return snprintf(out, 256,
                    "{\"correlation_id\":\"%.36s\",\"causation_id\":\"%.36s\","
                    "\"saga_id\":\"%.*s\",\"saga_type\":\"" SAGA_TYPE "\"}",
                    trip->commands[0], trip->commands[0], trip->key_size,
                    trip->key);
}

/* The steps whose commands go out in this page: from .. to, without to. */
static inline int trip_from(const struct trip *trip)
{
    return trip->awaited + 1;
}

static inline int trip_to(const struct trip *trip)
{
    return trip_ended(trip) ? TRIP_STEPS : trip->awaits + 1;
}

/* Whether the step is answered by the end of the page. */
static inline int trip_answered(const struct trip *trip, int step)
{
    return step < trip->awaits;
}

static inline int trip_partition(const struct trip *trip)
{
    return (int)(bare_fnv1a((struct slice){trip->key, trip->key_size}) %
                 BARE_PARTITIONS);
}

#endif
