/*
 * What a worker may leave in the page that it shares with its supervisor, under
 * libFuzzer: any bytes are refused, or give an attempt within its bounds, whose
 * next retry has a time.
 */
#include "base/clock.h"
#include "consumer/attempt_slot.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t max)
{
    if (strnlen(text, max + 1) > max)
        abort();
}

static void check(const struct attempt *a)
{
    int64_t delay;

    if (a->kind < ATTEMPT_HANDLER || a->kind > ATTEMPT_DEADLINE ||
        a->partition < 0 || a->attempt < 1 || a->position < 0 || a->epoch < 0)
        abort();
    check_text(a->consumer_id, UUID_TEXT_LEN);
    check_text(a->type, ATTEMPT_TYPE_MAX);
    check_text(a->name, ATTEMPT_TEXT_MAX);
    check_text(a->source, ATTEMPT_TEXT_MAX);
    check_text(a->key, ATTEMPT_TEXT_MAX);
    check_text(a->where, ATTEMPT_WHERE_MAX);
    (void)retry_policy_allows(&a->retry, a->attempt);
    delay = retry_policy_delay(&a->retry, a->attempt, UINT64_MAX);
    if (delay < 0 || delay > CLOCK_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(struct attempt_slot) unsigned char page[ATTEMPT_SLOT_SIZE];
    const struct attempt_slot *slot = (const struct attempt_slot *)(void *)page;
    struct attempt attempt;

    memset(page, 0, sizeof(page));
    if (size > sizeof(page))
        size = sizeof(page);
    if (size > 0)
        memcpy(page, data, size);
    (void)attempt_slot_ticked_at(slot);
    (void)attempt_slot_waits(slot);
    (void)attempt_slot_is_vouched(slot);
    if (attempt_slot_read(slot, &attempt))
        check(&attempt);
    return 0;
}
