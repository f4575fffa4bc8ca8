#include "consumer/attempt_slot.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* A live worker may be at its next call each time somebody looks. */
#define READ_TRIES 100

/* --- the worker's side ---------------------------------------------------- */

static void change_begin(struct attempt_slot *slot)
{
    uint32_t version = atomic_load_explicit(&slot->version,
                                            memory_order_relaxed);

    atomic_store_explicit(&slot->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void change_end(struct attempt_slot *slot)
{
    uint32_t version = atomic_load_explicit(&slot->version,
                                            memory_order_relaxed);

    atomic_store_explicit(&slot->version, version + 1, memory_order_release);
}

/* clock_monotonic of the last tick of the system's timer, some milliseconds ago
 * at most: supervisors look every 50, and reading it costs next to nothing. */
static int64_t coarse_now(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) != 0)
        return clock_monotonic();
    return (int64_t)now.tv_sec * CLOCK_SECOND + now.tv_nsec / 1000;
}

/* What does not fit is cut: no column holds more. */
static uint16_t put(char *to, size_t room, struct text t)
{
    size_t len = t.len < room ? t.len : room;

    if (t.data != NULL && len > 0)
        memcpy(to, t.data, len);
    return (uint16_t)len;
}

void attempt_slot_tick(struct attempt_slot *slot)
{
    if (slot != NULL)
        atomic_store_explicit(&slot->ticked_at, clock_monotonic(),
                              memory_order_relaxed);
}

void attempt_slot_consumer(struct attempt_slot *slot,
                           const struct attempt_consumer *consumer)
{
    if (slot == NULL)
        return;
    change_begin(slot);
    slot->type_len = put(slot->type, sizeof(slot->type),
                         text_of(consumer->type));
    slot->name_len = put(slot->name, sizeof(slot->name),
                         text_of(consumer->name));
    slot->source_len = put(slot->source, sizeof(slot->source),
                           text_of(consumer->source));
    memcpy(slot->consumer_id, consumer->id, sizeof(slot->consumer_id));
    slot->epoch = consumer->epoch;
    slot->after = consumer->after;
    slot->attempts = consumer->retry.attempts;
    slot->delay_us = consumer->retry.delay_us;
    slot->max_delay_us = consumer->retry.max_delay_us;
    slot->factor = consumer->retry.factor;
    slot->jitter = consumer->retry.jitter;
    change_end(slot);
}

void attempt_slot_start(struct attempt_slot *slot,
                        const struct attempt_call *call)
{
    const struct message *message = call->message;

    if (slot == NULL)
        return;
    change_begin(slot);
    slot->kind = (int32_t)call->kind;
    slot->partition = call->partition;
    slot->attempt = call->attempt;
    slot->position = message->position;
    memcpy(slot->message_id, message->id.bytes, sizeof(slot->message_id));
    slot->has_key = call->key.data != NULL;
    slot->key_len = put(slot->key, sizeof(slot->key), call->key);
    slot->where_len = put(slot->where, sizeof(slot->where),
                          call->where != NULL ? text_of(call->where)
                                              : TEXT_NONE);
    change_end(slot);
    atomic_store_explicit(&slot->started_at, coarse_now(),
                          memory_order_release);
}

void attempt_slot_end(struct attempt_slot *slot)
{
    if (slot == NULL)
        return;
    atomic_store_explicit(&slot->started_at, 0, memory_order_release);
    atomic_store_explicit(&slot->waits, 0, memory_order_relaxed);
}

void attempt_slot_wait(struct attempt_slot *slot, bool waits)
{
    if (slot != NULL)
        atomic_store_explicit(&slot->waits, waits, memory_order_relaxed);
}

bool attempt_slot_is_vouched(const struct attempt_slot *slot)
{
    return atomic_load_explicit(&slot->vouched, memory_order_relaxed) != 0;
}

/* --- the supervisor's side ------------------------------------------------ */

int64_t attempt_slot_ticked_at(const struct attempt_slot *slot)
{
    return atomic_load_explicit(&slot->ticked_at, memory_order_relaxed);
}

int64_t attempt_slot_started_at(const struct attempt_slot *slot)
{
    return atomic_load_explicit(&slot->started_at, memory_order_acquire);
}

void attempt_slot_vouch(struct attempt_slot *slot)
{
    atomic_store_explicit(&slot->vouched, 1, memory_order_relaxed);
}

bool attempt_slot_waits(const struct attempt_slot *slot)
{
    return atomic_load_explicit(&slot->waits, memory_order_relaxed) != 0;
}

/* A copy of the page as it stood at one moment of no change. */
static bool copy_page(const struct attempt_slot *slot,
                      struct attempt_slot *copy, int64_t *started_at)
{
    for (int i = 0; i < READ_TRIES; i++) {
        int64_t began = attempt_slot_started_at(slot);
        uint32_t version = atomic_load_explicit(&slot->version,
                                                memory_order_acquire);

        if (began == 0)
            return false;
        if (version % 2 != 0)
            continue;
        memcpy(copy, slot, sizeof(*copy));
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&slot->version, memory_order_relaxed) ==
                version &&
            attempt_slot_started_at(slot) == began) {
            *started_at = began;
            return true;
        }
    }
    return false;
}

/* Text of the page, as a string. False for what no worker writes. Whether the
 * bytes are text is for the database to say, as with those of a message. */
static bool take(const char *from, size_t len, size_t room, char *to)
{
    if (len > room || memchr(from, '\0', len) != NULL)
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

static bool take_retry(const struct attempt_slot *page,
                       struct retry_policy *retry)
{
    *retry = (struct retry_policy){
        .attempts = page->attempts,
        .delay_us = page->delay_us,
        .factor = page->factor,
        .max_delay_us = page->max_delay_us,
        .jitter = page->jitter,
    };
    return retry->attempts >= 1 && retry->delay_us >= 0 &&
           retry->max_delay_us >= 0 && retry->max_delay_us <= CLOCK_MAX &&
           isfinite(retry->factor) && retry->factor >= 0 &&
           isfinite(retry->jitter) && retry->jitter >= 0 && retry->jitter <= 1;
}

bool attempt_slot_read(const struct attempt_slot *slot, struct attempt *a)
{
    struct attempt_slot page;

    *a = (struct attempt){.kind = ATTEMPT_HANDLER};
    if (!copy_page(slot, &page, &a->started_at))
        return false;
    if (page.kind < ATTEMPT_HANDLER || page.kind > ATTEMPT_DEADLINE ||
        page.has_key > 1 || page.partition < 0 || page.attempt < 1 ||
        page.position < 0 || page.epoch < 0)
        return false;
    a->kind = (enum attempt_kind)page.kind;
    a->partition = page.partition;
    a->attempt = page.attempt;
    a->position = page.position;
    a->epoch = page.epoch;
    a->after = page.after;
    a->has_key = page.has_key == 1;
    memcpy(a->message_id.bytes, page.message_id, sizeof(page.message_id));
    return take(page.consumer_id, UUID_TEXT_LEN, UUID_TEXT_LEN,
                a->consumer_id) &&
           take(page.type, page.type_len, ATTEMPT_TYPE_MAX, a->type) &&
           take(page.name, page.name_len, ATTEMPT_TEXT_MAX, a->name) &&
           take(page.source, page.source_len, ATTEMPT_TEXT_MAX, a->source) &&
           take(page.key, page.key_len, ATTEMPT_TEXT_MAX, a->key) &&
           take(page.where, page.where_len, ATTEMPT_WHERE_MAX, a->where) &&
           take_retry(&page, &a->retry);
}
