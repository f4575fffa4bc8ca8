/*
 * Operate letters -- what an operator does about undelivered messages: look,
 * try again, delete. There may be very many, so a change is made consumer by
 * consumer in transactions of a thousand rows, each of which holds the
 * consumer's checkpoints as the verbs of consumer/operate.h do. One that fails
 * leaves what those before it did, and a repeat goes on; when all is done, it
 * changes nothing. What is added meanwhile is not meant.
 */
#ifndef HOST_CONSUMER_OPERATE_LETTERS_H
#define HOST_CONSUMER_OPERATE_LETTERS_H

#include "consumer/letter.h"
#include "consumer/operate.h"

/** What was done for one consumer. */
struct letters_consumer {
    const char *id;
    const char *type;
    const char *name;
    enum consumer_state state; /* in which it stays */
    enum halt_reason halt_reason;
    int64_t changed; /* messages that were retried or deleted */
    int64_t due;     /* retry: they are tried at once already */
    int64_t waiting; /* retry: they wait behind another message */
};

struct letters_result {
    struct arena arena; /* holds everything */
    struct letters_consumer *consumers;
    size_t nconsumers;
    int64_t changed; /* of all consumers */
    int64_t due;
    int64_t waiting;
};

/**
 * Reads letters into `arena` in a view of its own. `consumer` (NULL: any) goes
 * before filter->consumer_id. USAGE as operate_pause.
 */
enum status operate_list(const struct operate_env *env, const char *consumer,
                         const struct letter_filter *filter, size_t limit,
                         enum letter_detail detail, struct arena *arena,
                         struct letters *letters, struct diag *diag) MUST_CHECK;

/** Gives letters a fresh budget, due at once. letters_result_free is owed when
 * it returns OK. */
enum status operate_retry(const struct operate_env *env, const char *consumer,
                          const struct letter_filter *filter,
                          struct letters_result *result,
                          struct diag *diag) MUST_CHECK;

/** Deletes letters and records the skips. */
enum status operate_delete(const struct operate_env *env, const char *consumer,
                           const struct letter_filter *filter,
                           struct letters_result *result,
                           struct diag *diag) MUST_CHECK;
void letters_result_free(struct letters_result *result);

#endif
