/*
 * Undelivered keys -- which keys and partitions are held by undelivered
 * messages of a consumer, as its memory has it: what comes behind such a
 * message is recorded behind it and not applied. The rows themselves are in
 * consumer/undelivered.h.
 */
#ifndef HOST_CONSUMER_UNDELIVERED_KEYS_H
#define HOST_CONSUMER_UNDELIVERED_KEYS_H

#include "base/arena.h"
#include "base/map.h"
#include "db/catalog.h"
#include "db/db.h"

/** What a key's later messages do. */
enum key_hold {
    KEY_FREE,
    KEY_WAITS, /* they are recorded as WAITING */
    KEY_DEAD,  /* they are recorded as DEAD_LETTER_KEY */
};

/** Keys and partitions that have undelivered messages which hold them. */
struct undelivered_keys {
    struct arena arena;
    struct map keys; /* key -> enum key_hold; the empty key stands for none */
    bool *blocked;   /* by partition: a message whose keys are unknown */
    int partitions;
};

void undelivered_keys_init(struct undelivered_keys *keys, int partitions);

/** Reads them all anew. */
enum status undelivered_keys_read(struct db *db, const struct catalog *catalog,
                                  const char *consumer_id, const char *source,
                                  struct undelivered_keys *keys,
                                  struct diag *diag) MUST_CHECK;
/** Holds a key, or with KEY_FREE lets it go. */
void undelivered_keys_hold(struct undelivered_keys *keys, struct text key,
                           enum key_hold hold);
enum key_hold undelivered_keys_held(const struct undelivered_keys *keys,
                                    struct text key);
void undelivered_keys_clear(struct undelivered_keys *keys);
void undelivered_keys_free(struct undelivered_keys *keys);

#endif
