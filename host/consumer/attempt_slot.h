/*
 * Attempt slot -- what a worker says about itself in the page of memory that
 * it shares with its supervisor: that it is alive, and which message its user
 * code runs for, since when. When the worker dies or hangs, the supervisor
 * reads there whose attempt that was (consumer/charge.h counts it).
 *
 * The worker writes, a few stores for each call; the page lies in a memfd, so
 * it outlives the worker. Its bytes are not trusted by who reads them. Within
 * one process (workers = 0) there is no page: every writer takes NULL.
 */
#ifndef HOST_CONSUMER_ATTEMPT_SLOT_H
#define HOST_CONSUMER_ATTEMPT_SLOT_H

#include "consumer/policy.h"
#include "topic/message.h"

#include <stdatomic.h>

/** Bytes to map. All zero is a slot that says nothing yet. */
#define ATTEMPT_SLOT_SIZE 4096

/** In place of where a page begins: retries of undelivered messages. */
#define ATTEMPT_RETRY INT64_MIN

/* A column of 255 characters, in UTF-8. */
#define ATTEMPT_TEXT_MAX  1020
#define ATTEMPT_TYPE_MAX  32
#define ATTEMPT_WHERE_MAX 160

/** Which of the user's functions runs. */
enum attempt_kind {
    ATTEMPT_HANDLER,  /* one that applies the message */
    ATTEMPT_KEY,      /* the one that tells its keys */
    ATTEMPT_ON_ERROR, /* the one that says what a spent budget means */
    ATTEMPT_RESET,    /* one that runs for no message */
    ATTEMPT_DEADLINE, /* one of a saga's deadline, whose id is the message's */
};

/** The shared page. Fields are for attempt_slot.c: `version` is odd while the
 * fields behind it change. */
struct attempt_slot {
    _Atomic int64_t ticked_at;
    _Atomic int64_t started_at;
    _Atomic uint32_t version;
    _Atomic uint32_t waits;
    _Atomic uint32_t vouched; /* by the supervisor */
    int32_t kind;
    int32_t partition;
    int32_t attempt;
    int64_t position;
    int64_t epoch;
    int64_t after;
    int64_t delay_us, max_delay_us;
    double factor, jitter;
    int32_t attempts;
    uint8_t message_id[16];
    char consumer_id[UUID_TEXT_LEN];
    uint16_t type_len, name_len, source_len, key_len, where_len;
    uint8_t has_key;
    char type[ATTEMPT_TYPE_MAX];
    char name[ATTEMPT_TEXT_MAX];
    char source[ATTEMPT_TEXT_MAX];
    char key[ATTEMPT_TEXT_MAX];
    char where[ATTEMPT_WHERE_MAX];
};

_Static_assert(sizeof(struct attempt_slot) <= ATTEMPT_SLOT_SIZE,
               "the slot is one page");

/** Whose messages the calls from now on are for. Borrowed during the call. */
struct attempt_consumer {
    const char *type, *name, *source;
    const char *id; /* of its row, UUID_TEXT_LEN characters */
    int64_t epoch;
    int64_t after; /* the page's: what it reads begins behind it */
    struct retry_policy retry;
};

/** One call. Borrowed during attempt_slot_start. */
struct attempt_call {
    enum attempt_kind kind;
    const struct message *message; /* RESET: any */
    struct text key;               /* NULL data: none */
    int partition;
    int attempt;       /* from 1; ON_ERROR: how often it has failed */
    const char *where; /* "handlers/x.lua:12": the function; NULL: unknown */
};

/** The worker's side; `slot` may be NULL. Ticks: the main loop, between steps
 * and while it waits. */
void attempt_slot_tick(struct attempt_slot *slot);
void attempt_slot_consumer(struct attempt_slot *slot,
                           const struct attempt_consumer *consumer);
void attempt_slot_start(struct attempt_slot *slot,
                        const struct attempt_call *call);
void attempt_slot_end(struct attempt_slot *slot);
/** Whether the call waits for the database, which ends that by itself. */
void attempt_slot_wait(struct attempt_slot *slot, bool waits);

/** When the worker last ticked and when the call under way began, both in
 * clock_monotonic; 0: never, no call. Cheap: for the supervisor's rounds. */
int64_t attempt_slot_ticked_at(const struct attempt_slot *slot);
int64_t attempt_slot_started_at(const struct attempt_slot *slot);
/** Whether the worker says that its call waits for the database. */
bool attempt_slot_waits(const struct attempt_slot *slot);

/** The supervisor beats for this instance from now on; whether it does. */
void attempt_slot_vouch(struct attempt_slot *slot);
bool attempt_slot_is_vouched(const struct attempt_slot *slot);

/** A copy of what the slot says, checked. Texts end with a NUL. */
struct attempt {
    int64_t started_at;
    enum attempt_kind kind;
    char consumer_id[UUID_TEXT_LEN + 1];
    char type[ATTEMPT_TYPE_MAX + 1];
    char name[ATTEMPT_TEXT_MAX + 1];
    char source[ATTEMPT_TEXT_MAX + 1];
    int64_t epoch;
    int64_t after;
    struct retry_policy retry;
    int64_t position;
    struct uuid message_id;
    int partition;
    int attempt;
    bool has_key;
    char key[ATTEMPT_TEXT_MAX + 1];
    char where[ATTEMPT_WHERE_MAX + 1];
};

/**
 * False when no call is under way, when the slot changes all the time (the
 * worker lives and goes on), or when it holds what no worker writes. For a
 * worker that has ended the answer is final.
 */
bool attempt_slot_read(const struct attempt_slot *slot,
                       struct attempt *attempt);

#endif
