#include "consumer/page_units.h"

#include "base/hash.h"
#include "consumer/apply.h"
#include "consumer/outcome.h"

/* Units that a page may have for each of its messages, on average, before it
 * is cut short. */
#define UNITS_PER_MESSAGE 4

struct key_sink {
    struct consumer *consumer;
    const struct message *message;
    const struct poll *poll;
    const struct checkpoint_lock *lock;
    const struct recorded *recorded;
};

static void take_key(void *arg, struct text key)
{
    const struct key_sink *sink = arg;
    struct consumer *c = sink->consumer;
    int partition = hash_partition(key, c->env->partitions);

    if (!poll_has(sink->poll, partition))
        return;
    if (sink->lock->skipped &&
        skips_hold(&c->skips, sink->message->position, key))
        return;
    apply_unit_add(c, &(struct unit){
                          .message = sink->message,
                          .key = arena_copy(&c->arena, key),
                          .partition = partition,
                          .attempt = 1,
                          .recorded = recorded_of(sink->recorded, sink->message,
                                                  key, partition),
                      });
}

/* A message whose keys cannot be told: recorded in every partition that met
 * it, and the page ends there. */
static void unresolved(struct consumer *c, const struct message *message,
                       const struct poll *poll, const struct failure *failure)
{
    const struct unit unit = {
        .message = message,
        .key = TEXT_NONE,
        .partition = (int)poll->partitions[0],
        .attempt = 1,
    };
    struct outcome outcome = outcome_of(c, &unit, 1, true, failure);

    if (outcome.skip) {
        apply_skip_add(c, &unit, true, outcome.entry.failure);
        return;
    }
    for (size_t i = 0; i < poll->npartitions; i++) {
        outcome.entry.partition = (int)poll->partitions[i];
        apply_entry_add(c, &outcome.entry);
    }
}

/* A message that is recorded for want of keys: it ends the page, and the
 * partitions that were not told of it are told. */
static void recorded_before(struct consumer *c, const struct message *message,
                            const struct poll *poll,
                            const struct recorded *recorded,
                            const struct undelivered_recorded *row)
{
    struct failure failure;

    failure_recorded(&failure, row->reason);
    for (size_t i = 0; i < poll->npartitions; i++) {
        struct undelivered_entry entry = {
            .message = message,
            .partition = (int)poll->partitions[i],
            .status = row->status,
            .failure_count = row->failure_count,
            .next_retry_at = row->next_retry_at,
            .unresolved = true,
        };

        if (recorded_in(recorded, message, entry.partition))
            continue;
        entry.failure = apply_keep_failure(c, &failure);
        apply_entry_add(c, &entry);
    }
}

/* Without a key a message is no projection's; who takes it all the same has it
 * stand by itself, in the partition that its id has brought it to. */
struct text page_units_key(struct consumer *c, const struct message *m)
{
    char id[UUID_TEXT_LEN + 1];

    if (m->key.data != NULL || !c->takes_keyless)
        return m->key;
    uuid_format(&m->id, id);
    return arena_copy(&c->page.arena, text_of(id));
}

enum status page_units(struct consumer *c, const struct poll *poll,
                       const struct checkpoint_lock *lock,
                       const struct recorded *recorded, int64_t *through,
                       struct diag *diag)
{
    struct key_sink sink = {
        .consumer = c,
        .poll = poll,
        .lock = lock,
        .recorded = recorded,
    };
    struct failure failure;
    enum status status;

    *through = c->page.through;
    for (size_t i = 0; i < c->page.count; i++) {
        const struct message *m = &c->page.messages[i];
        const struct undelivered_recorded *row;

        if (lock->skipped && skips_hold(&c->skips, m->position, TEXT_NONE))
            continue;
        row = recorded_without_key(recorded, m, poll);
        if (row != NULL) {
            recorded_before(c, m, poll, recorded, row);
            c->met_recorded = true;
            *through = m->position;
            return STATUS_OK;
        }
        if (!c->own_key) {
            struct text key = page_units_key(c, m);

            if (key.data != NULL &&
                (!lock->skipped || !skips_hold(&c->skips, m->position, key)))
                apply_unit_add(c, &(struct unit){
                                      .message = m,
                                      .key = key,
                                      .partition = m->partition,
                                      .attempt = 1,
                                      .recorded = recorded_of(recorded, m, key,
                                                              m->partition),
                                  });
            continue;
        }
        sink.message = m;
        status = c->applier.ops->keys(c->applier.self, m, 1, take_key, &sink,
                                      &failure);
        if (status == STATUS_FAILED) {
            unresolved(c, m, poll, &failure);
            *through = m->position;
            return STATUS_OK;
        }
        if (status != STATUS_OK)
            return diag_set(diag, status, "%s", failure.reason);
        /* a key function may make many of one, or take its time: the
         * transaction stays short */
        if (c->nunits >= UNITS_PER_MESSAGE * c->limit || apply_is_long(c)) {
            *through = m->position;
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}
