#include "consumer/apply.h"

#include "consumer/careful.h"
#include "consumer/careful_page.h"
#include "consumer/flight.h"
#include "consumer/outcome.h"
#include "consumer/page_units.h"
#include "consumer/recorded.h"
#include "consumer/retry_turn.h"
#include "consumer/standing.h"

/* --- the transaction ------------------------------------------------------ */

enum status apply_begin(struct consumer *c, bool *run,
                        struct checkpoint_lock *lock, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    bool undone, own = flight_is_of(c);
    struct checkpoints stored;
    enum status status;
    int lost;

    *run = false;
    c->ended = NULL;
    if (c->leases.count == 0)
        return STATUS_OK;
    status = flight_settle(env->flight, &undone, diag);
    if (status != STATUS_OK || (own && undone))
        return status;
    status = db_begin(env->db, diag);
    if (status != STATUS_OK)
        return status;
    checkpoints_init(&stored, c->stored.partitions);
    status = checkpoint_take(env->db, env->catalog, c->row.id, c->source,
                             &c->leases, env->instance, &stored, lock, &lost,
                             diag);
    if (status == STATUS_OK && lost >= 0)
        status = diag_set(diag, STATUS_FENCED,
                          "partition %d was taken over by another instance",
                          lost);
    else if (status == STATUS_OK &&
             (lock->epoch != c->row.epoch || !standing_is_at(c, &stored)))
        status = diag_set(diag, STATUS_FENCED,
                          "the checkpoints were moved by somebody else");
    checkpoints_free(&stored);
    if (status != STATUS_OK) {
        db_rollback(env->db);
        return status;
    }
    c->row.state = lock->state;
    c->row.halt_reason = lock->halt_reason;
    c->topic_on = lock->topic_on;
    if (lock->state != CONSUMER_RUNNING) {
        db_rollback(env->db);
        return STATUS_OK;
    }
    *run = true;
    return STATUS_OK;
}

void apply_committed(struct consumer *c)
{
    c->saved_at = consumer_time(c->env);
    if (c->row.state == CONSUMER_HALTED)
        log_write(
            c->env->log, LOG_ERROR,
            &(struct log_about){.consumer = c->name.name, .topic = c->source},
            "halted with %s: fix the handler; a host that runs tries the "
            "message again when it is saved, so does a start or `moontide "
            "resume %s`",
            halt_reason_word(c->row.halt_reason), c->name.name);
}

/* --- a page ----------------------------------------------------------------
 */

/* Later messages of a held key wait behind it, in position order. */
static void page_unit_waits(struct consumer *c, void *arg, size_t unit,
                            enum key_hold hold)
{
    (void)arg;
    apply_wait_add(c, &c->units[unit], hold);
}

static enum key_hold page_unit_fails(struct consumer *c, void *arg, size_t unit,
                                     const struct failure *failure)
{
    const struct unit *u = &c->units[unit];
    struct outcome outcome = outcome_of(c, u, u->attempt, false, failure);

    (void)arg;
    if (outcome.skip)
        apply_skip_add(c, u, false, outcome.entry.failure);
    else
        apply_entry_add(c, &outcome.entry);
    return outcome.hold;
}

/* Skips are met again only by a partition that is behind: also by one that
 * another instance applies. */
static enum status forget_skips(struct consumer *c, const struct poll *poll,
                                int64_t through, struct diag *diag)
{
    struct checkpoint_lock lock = {.epoch = 0};
    struct checkpoints now;
    int64_t lowest = through;
    enum status status = STATUS_OK;

    checkpoints_init(&now, c->stored.partitions);
    memcpy(now.position, c->stored.position,
           (size_t)now.partitions * sizeof(*now.position));
    if (!leases_hold_all(&c->leases))
        status = checkpoint_read(c->env->db, c->env->catalog, c->row.id,
                                 c->source, &now, &lock, diag);
    for (int p = 0; p < now.partitions; p++)
        if (!poll_has(poll, p) && now.position[p] < lowest)
            lowest = now.position[p];
    checkpoints_free(&now);
    if (status != STATUS_OK)
        return status;
    return skips_forget(c->env->db, c->env->catalog, c->row.id, c->source,
                        lowest, diag);
}

/* What of a page was told before its units ran: of a message that ends it
 * because its keys cannot be told. */
struct page_end {
    size_t units, entries, skipping;
};

/* The page took so long that it ends before some of its units: what was told
 * of its end is met again. */
static void end_early(struct consumer *c, const struct page_end *end,
                      int64_t *through)
{
    c->nentries -= end->entries;
    for (size_t i = 0; i < c->nentries; i++)
        c->entries[i] = c->entries[i + end->entries];
    c->nskipping -= end->skipping;
    for (size_t i = 0; i < c->nskipping; i++)
        c->skipping[i] = c->skipping[i + end->skipping];
    *through = c->units[c->nunits - 1].message->position;
}

/* Everything of the page but begin and the end of the transaction. `looked`
 * is NULL when it passes without a look. */
static enum status page_run(struct consumer *c, const struct poll *poll,
                            const struct checkpoint_lock *looked,
                            const struct apply_search *search, bool *repeat,
                            int64_t *through, struct diag *diag)
{
    const struct checkpoint_lock quiet = {.epoch = c->row.epoch,
                                          .undelivered = c->retries.any};
    const struct checkpoint_lock *lock = looked != NULL ? looked : &quiet;
    const struct consumer_env *env = c->env;
    const struct apply_run run = {
        .careful = search->careful,
        .refused = search->refused,
        .held = &c->held,
        .fails = page_unit_fails,
        .waits = page_unit_waits,
    };
    struct recorded recorded = {.count = 0};
    struct page_end end = {0};
    enum status status = STATUS_OK;

    c->began = clock_monotonic();
    apply_tell_slot(c, poll->after);
    c->nunits = c->nentries = c->nskipping = 0;
    c->met_recorded = false;
    undelivered_keys_clear(&c->newly);
    *repeat = false;
    /* somebody else may have settled them; of more rows than are known only
     * this host could be the writer */
    c->retries.any = lock->undelivered;
    if (!lock->undelivered)
        undelivered_keys_clear(&c->held);
    if (lock->skipped)
        status = skips_read(env->db, env->catalog, c->row.id, c->source,
                            poll->after, c->page.through, &c->skips, diag);
    if (status == STATUS_OK && looked != NULL && lock->undelivered)
        status = recorded_read(c, poll, careful_looks_to(c), &recorded, diag);
    if (status == STATUS_OK && careful_is_of(c, poll))
        status = careful_take_back(c, recorded.rows, &recorded.count, diag);
    if (status == STATUS_OK)
        status = careful_page_take_back(c, poll, &recorded, diag);
    if (status == STATUS_OK)
        c->met_recorded = recorded_end_page(c, poll, &recorded);
    if (status == STATUS_OK)
        status = page_units(c, poll, lock, &recorded, through, diag);
    if (status == STATUS_OK && looked == NULL)
        status = flight_pass(c, *through, diag);
    end = (struct page_end){c->nunits, c->nentries, c->nskipping};
    if (status == STATUS_OK)
        status = apply_units(c, &run, repeat, diag);
    if (status != STATUS_OK || *repeat)
        return status;
    if (c->nunits < end.units) {
        *repeat = looked == NULL; /* it has said already how far it comes */
        if (*repeat)
            return STATUS_OK;
        end_early(c, &end, through);
    }

    if (looked != NULL)
        status = checkpoint_still(env->db, env->catalog, c->row.id,
                                  c->row.epoch, c->topic_on, diag);
    if (status == STATUS_OK)
        status = apply_record(c, false, diag);
    if (status == STATUS_OK)
        status = careful_count_next(c, poll, recorded.rows, recorded.count,
                                    diag);
    if (status == STATUS_OK && lock->skipped)
        status = forget_skips(c, poll, *through, diag);
    if (status == STATUS_OK && looked != NULL)
        status = checkpoint_advance(env->db, env->catalog, c->row.id, c->source,
                                    poll->partitions, poll->npartitions,
                                    *through, diag);
    return status;
}

/* What the batch holds is held from now on. */
static void keep_holds(struct consumer *c)
{
    for (size_t i = 0; i < c->nentries; i++) {
        const struct undelivered_entry *e = &c->entries[i];
        enum key_hold hold = undelivered_keys_held(&c->newly, e->key);

        if (!e->unresolved && hold != KEY_FREE)
            undelivered_keys_hold(&c->held, e->key, hold);
    }
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
    c->conflicts = 0;
    careful_passed(c, poll, through);
    keep_holds(c);
    apply_entries_told(c);
    apply_committed(c);
    if (c->met_recorded) { /* what it holds counts from now on */
        c->held_known = false;
        retry_turn_now(c);
    }
}

/* Nothing of the batch is to be told after its commit, or to be held from then
 * on: what it records waits behind what is held already. */
static bool is_plain(const struct consumer *c)
{
    if (c->nskipping > 0)
        return false;
    for (size_t i = 0; i < c->nentries; i++)
        if (c->entries[i].failure != NULL)
            return false;
    return true;
}

/*
 * The page without a look before: *sent when it is in flight now. *again asks
 * for another turn of the consumer: what was in flight did not come to be.
 * CONFLICT, and *repeat, ask for an attempt that looks.
 */
static enum status page_pass(struct consumer *c, const struct poll *poll,
                             struct apply_search *search, bool *again,
                             bool *repeat, struct diag *diag)
{
    struct db *db = c->env->db;
    int64_t through = c->page.through;
    struct diag settled;
    enum status before, status;

    *repeat = *again = false;
    c->ended = NULL;
    status = db_begin(db, diag);
    if (status != STATUS_OK)
        return status;
    status = page_run(c, poll, NULL, search, repeat, &through, diag);
    before = flight_settle(c->env->flight, again, &settled);
    if (before != STATUS_OK) {
        *diag = settled;
        status = before;
    }
    if (status == STATUS_OK && !*again && !*repeat) {
        poll_announce(c, poll, through);
        if (is_plain(c)) {
            c->retries.doubtful |= c->nentries > 0;
            status = flight_send(c, poll, through, diag);
        } else {
            status = apply_commit(c, false, diag);
            if (status == STATUS_OK)
                page_committed(c, poll, through);
            c->quiet = status == STATUS_OK && c->nskipping == 0;
        }
    }
    c->applier.ops->end(c->applier.self);
    if (status != STATUS_OK || *again || *repeat)
        db_rollback(db);
    return before == STATUS_OK && *again ? STATUS_OK : status;
}

/* The page with a look before, as often as its search asks for it. */
static enum status page_look(struct consumer *c, const struct poll *poll,
                             struct apply_search search, struct diag *diag)
{
    c->careful = false;
    apply_search_resume(&search, c->conflicts);
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
            c->quiet = c->nskipping == 0 && !lock.skipped;
            return STATUS_OK;
        }
        status = apply_search_on(c, &search, status, c->page.count <= 1,
                                 &c->conflicts, diag);
        if (search.split)
            c->singly = c->page.count;
        if (status != STATUS_OK || search.split)
            return status;
    }
}

/* As a whole, or message by message, each transaction with the count of the
 * next one. */
static enum status page_carefully(struct consumer *c, const struct poll *poll,
                                  struct diag *diag)
{
    struct poll here = *poll;
    bool go;
    enum status status = careful_begin_page(c, &here, &go, diag);

    while (status == STATUS_OK && go) {
        struct apply_search search = {.careful = c->careful};

        status = page_look(c, &here, search, diag);
        here.after = c->page.through;
        if (status == STATUS_OK)
            status = careful_next(c, &here, &go, diag);
    }
    c->counted.rides = false;
    c->counted.next = NULL;
    return status;
}

enum status apply_page(struct consumer *c, const struct poll *poll,
                       struct diag *diag)
{
    struct apply_search search = {.careful = c->careful};

    if (careful_is_of(c, poll))
        return page_carefully(c, poll, diag);
    if (flight_may(c, poll)) {
        bool again, repeat;
        enum status status = page_pass(c, poll, &search, &again, &repeat, diag);

        if (again || (status == STATUS_OK && !repeat))
            return status;
        if (status == STATUS_LOST && c->conflicts == 0)
            c->conflicts = 1; /* the next attempt looks, and counts */
        if (status != STATUS_OK && status != STATUS_CONFLICT &&
            !applier_is_fault(status))
            return status;
        search.careful = repeat || status != STATUS_CONFLICT;
        c->quiet = false;
    }
    return page_look(c, poll, search, diag);
}
