#include "consumer/apply.h"

#include "base/hash.h"

/* Units that a page may have for each of its messages, on average, before it
 * is cut short. */
#define UNITS_PER_MESSAGE 4

/* --- the transaction ------------------------------------------------------ */

enum status apply_begin(struct consumer *c, bool *run,
                        struct checkpoint_lock *lock, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct checkpoints stored;
    enum status status;

    *run = false;
    c->ended = NULL;
    status = db_begin(env->db, diag);
    if (status != STATUS_OK)
        return status;
    checkpoints_init(&stored, c->stored.partitions);
    status = checkpoint_lock(env->db, env->catalog, c->row.id, c->source,
                             &stored, lock, diag);
    if (status == STATUS_OK &&
        memcmp(stored.position, c->stored.position,
               (size_t)stored.partitions * sizeof(*stored.position)) != 0)
        status = diag_set(diag, STATUS_FENCED,
                          "the checkpoints of '%s' were moved by another "
                          "process: only one may run on this database",
                          c->name.name);
    checkpoints_free(&stored);
    if (status != STATUS_OK) {
        db_rollback(env->db);
        return status;
    }
    c->row.state = lock->state;
    c->row.halt_reason = lock->halt_reason;
    if (lock->state == CONSUMER_PAUSED || lock->state == CONSUMER_HALTED) {
        db_rollback(env->db);
        return STATUS_OK;
    }
    *run = true;
    return STATUS_OK;
}

enum status apply_halt(struct consumer *c, struct diag *diag)
{
    c->row.state = CONSUMER_HALTED;
    c->row.halt_reason = HALT_APPLY_ERROR;
    return registry_set_state(c->env->db, c->env->catalog, &c->row,
                              CONSUMER_HALTED, HALT_APPLY_ERROR,
                              clock_now(c->env->clock), diag);
}

void apply_committed(struct consumer *c)
{
    c->saved_at = consumer_time(c->env);
    if (c->row.state == CONSUMER_HALTED)
        log_write(
            c->env->log, LOG_ERROR,
            &(struct log_about){.consumer = c->name.name, .topic = c->source},
            "halted with %s: fix the handler and start again, which "
            "tries the message again",
            halt_reason_word(c->row.halt_reason));
}

/* --- a page ----------------------------------------------------------------
 */

struct key_sink {
    struct consumer *consumer;
    const struct message *message;
    const struct poll *poll;
    const struct checkpoint_lock *lock;
};

static bool polled(const struct poll *poll, int partition)
{
    for (size_t i = 0; i < poll->npartitions; i++)
        if (poll->partitions[i] == partition)
            return true;
    return false;
}

static void take_key(void *arg, struct text key)
{
    const struct key_sink *sink = arg;
    struct consumer *c = sink->consumer;
    int partition = hash_partition(key, c->env->partitions);

    if (!polled(sink->poll, partition))
        return;
    if (sink->lock->skipped &&
        skips_hold(&c->skips, sink->message->position, key))
        return;
    apply_unit_add(c, &(struct unit){
                          .message = sink->message,
                          .key = arena_copy(&c->arena, key),
                          .partition = partition,
                          .attempt = 1,
                      });
}

/* Later messages of a held key wait behind it, in position order. */
static void page_unit_waits(struct consumer *c, void *arg, size_t unit,
                            const struct failure *failure)
{
    const struct unit *u = &c->units[unit];

    (void)arg;
    (void)failure;
    apply_entry_add(c, &(struct undelivered_entry){
                           .message = u->message,
                           .key = u->key,
                           .partition = u->partition,
                           .status = UNDELIVERED_WAITING,
                       });
}

/* The default policy: the message halts its consumer, and its key waits. */
static void page_unit_fails(struct consumer *c, void *arg, size_t unit,
                            const struct failure *failure)
{
    const struct unit *u = &c->units[unit];

    (void)arg;
    apply_entry_add(c, &(struct undelivered_entry){
                           .message = u->message,
                           .key = u->key,
                           .partition = u->partition,
                           .status = UNDELIVERED_HALTED,
                           .failure_count = 1,
                           .failure = apply_keep_failure(c, failure),
                       });
}

/* A message whose keys cannot be told: recorded in every partition that met
 * it, and the page ends there. */
static void page_unresolved(struct consumer *c, const struct message *message,
                            const struct poll *poll,
                            const struct failure *failure)
{
    const struct failure *kept = apply_keep_failure(c, failure);

    for (size_t i = 0; i < poll->npartitions; i++)
        apply_entry_add(c, &(struct undelivered_entry){
                               .message = message,
                               .key = TEXT_NONE,
                               .partition = (int)poll->partitions[i],
                               .status = UNDELIVERED_HALTED,
                               .failure_count = 1,
                               .failure = kept,
                               .unresolved = true,
                           });
}

/* Turns the page into units. *through is where the checkpoints may go. */
static enum status page_units(struct consumer *c, const struct poll *poll,
                              const struct checkpoint_lock *lock,
                              int64_t *through, struct diag *diag)
{
    struct key_sink sink = {.consumer = c, .poll = poll, .lock = lock};
    struct failure failure;
    enum status status;

    *through = c->page.through;
    for (size_t i = 0; i < c->page.count; i++) {
        const struct message *m = &c->page.messages[i];

        if (lock->skipped && skips_hold(&c->skips, m->position, TEXT_NONE))
            continue;
        if (!c->own_key) {
            if (!lock->skipped || !skips_hold(&c->skips, m->position, m->key))
                apply_unit_add(c, &(struct unit){
                                      .message = m,
                                      .key = m->key,
                                      .partition = m->partition,
                                      .attempt = 1,
                                  });
            continue;
        }
        sink.message = m;
        status = c->applier.ops->keys(c->applier.self, m, take_key, &sink,
                                      &failure);
        if (status == STATUS_FAILED) {
            page_unresolved(c, m, poll, &failure);
            *through = m->position;
            return STATUS_OK;
        }
        if (status != STATUS_OK)
            return diag_set(diag, status, "%s", failure.reason);
        /* a key function may make many of one: the transaction stays short */
        if (c->nunits >= UNITS_PER_MESSAGE * c->limit) {
            *through = m->position;
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

static bool any_halted(const struct consumer *c)
{
    for (size_t i = 0; i < c->nentries; i++)
        if (c->entries[i].status == UNDELIVERED_HALTED)
            return true;
    return false;
}

/* Everything of the page but begin and the end of the transaction. */
static enum status page_run(struct consumer *c, const struct poll *poll,
                            const struct checkpoint_lock *lock,
                            const struct apply_search *search, bool *repeat,
                            int64_t *through, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    const struct apply_run run = {
        .careful = search->careful,
        .refused = search->refused,
        .fails = page_unit_fails,
        .waits = page_unit_waits,
    };
    enum status status = STATUS_OK;

    c->nunits = c->nentries = 0;
    undelivered_keys_clear(&c->held);
    *repeat = false;
    if (lock->undelivered)
        status = undelivered_keys_read(env->db, env->catalog, c->row.id,
                                       c->source, &c->held, diag);
    if (status == STATUS_OK && lock->skipped)
        status = skips_read(env->db, env->catalog, c->row.id, c->source,
                            poll->after, c->page.through, &c->skips, diag);
    if (status == STATUS_OK && c->held.unresolved)
        return diag_set(diag, STATUS_BUSY,
                        "'%s' waits for a message whose key is unknown",
                        c->name.name);
    if (status == STATUS_OK)
        status = page_units(c, poll, lock, through, diag);
    if (status == STATUS_OK)
        status = apply_units(c, &run, repeat, diag);
    if (status != STATUS_OK || *repeat)
        return status;

    status = undelivered_record(env->db, env->names, c->row.id, c->source,
                                c->entries, c->nentries, env->ids,
                                clock_now(env->clock), &c->arena, diag);
    if (status == STATUS_OK && any_halted(c))
        status = apply_halt(c, diag);
    if (status == STATUS_OK)
        status = checkpoint_advance(env->db, env->catalog, c->row.id, c->source,
                                    poll->partitions, poll->npartitions,
                                    *through, diag);
    return status;
}

/* Only a known commit moves memory. */
static void page_committed(struct consumer *c, const struct poll *poll,
                           int64_t through)
{
    for (size_t i = 0; i < poll->npartitions; i++) {
        c->stored.position[poll->partitions[i]] = through;
        c->reached.position[poll->partitions[i]] = through;
    }
    for (size_t i = 0; i < c->page.count; i++)
        c->applied += c->page.messages[i].position <= through;
    c->singly -= c->page.count < c->singly ? c->page.count : c->singly;
    apply_entries_told(c);
    apply_committed(c);
}

enum status apply_page(struct consumer *c, const struct poll *poll,
                       struct diag *diag)
{
    struct apply_search search = {.careful = false};

    for (;;) {
        struct checkpoint_lock lock = {.epoch = 0};
        int64_t through = c->page.through;
        bool run, repeat;
        enum status status = apply_begin(c, &run, &lock, diag);

        if (status != STATUS_OK || !run)
            return status;
        status = page_run(c, poll, &lock, &search, &repeat, &through, diag);
        if (status == STATUS_OK && !repeat) {
            poll_announce(c, poll, through);
            status = apply_commit(c, search.careful, diag);
        }
        c->applier.ops->end(c->applier.self);
        if (status == STATUS_OK && !repeat) {
            page_committed(c, poll, through);
            return STATUS_OK;
        }
        status = apply_search_on(c, &search, status, c->page.count <= 1, diag);
        if (search.split)
            c->singly = c->page.count;
        if (status != STATUS_OK || search.split)
            return status;
    }
}
