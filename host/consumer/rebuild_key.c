#include "consumer/rebuild_key.h"

#include "base/hash.h"
#include "consumer/apply.h"
#include "consumer/recorded.h"
#include "topic/high_water_mark.h"

struct key_search {
    struct consumer *consumer;
    const struct message *message;
    struct text key;
    int partition;
};

static void take_key(void *arg, struct text key)
{
    const struct key_search *search = arg;

    if (text_equal(key, search->key))
        apply_unit_add(search->consumer, &(struct unit){
                                             .message = search->message,
                                             .key = search->key,
                                             .partition = search->partition,
                                             .attempt = 1,
                                         });
}

/* What of the page waits until its keys can be told, in the order of positions:
 * its retry applies it, and would do so a second time. */
static enum status read_keyless(struct consumer *c, struct recorded *keyless,
                                struct diag *diag)
{
    int64_t *positions;

    arena_reset(&c->arena);
    positions = arena_alloc(&c->arena,
                            (c->page.count + 1) * sizeof(*positions));
    for (size_t i = 0; i < c->page.count; i++)
        positions[i] = c->page.messages[i].position;
    return undelivered_keyless(c->env->db, c->env->catalog, c->row.id,
                               c->source, positions, c->page.count, &c->arena,
                               &keyless->rows, &keyless->count, diag);
}

/* The messages of the page that have the key, less what is skipped or waits. */
static enum status key_units(struct consumer *c, struct text key, int partition,
                             const struct recorded *keyless,
                             struct failure *failure, struct diag *diag)
{
    struct key_search search = {c, NULL, key, partition};

    c->nunits = 0;
    for (size_t i = 0; i < c->page.count; i++) {
        enum status status;

        search.message = &c->page.messages[i];
        if (skips_hold(&c->skips, search.message->position, TEXT_NONE) ||
            skips_hold(&c->skips, search.message->position, key) ||
            recorded_in(keyless, search.message, partition))
            continue;
        if (!c->own_key) {
            if (search.message->key.data != NULL)
                take_key(&search, search.message->key);
            continue;
        }
        status = c->applier.ops->keys(c->applier.self, search.message, 1,
                                      take_key, &search, failure);
        if (status == STATUS_FAILED)
            return diag_set(diag, STATUS_FAILED,
                            "the keys of the message at position %lld cannot "
                            "be told: %s",
                            (long long)search.message->position,
                            failure->reason);
        if (status != STATUS_OK)
            return diag_set(diag, status, "%s", failure->reason);
    }
    return STATUS_OK;
}

static enum status key_apply(struct consumer *c, struct failure *failure,
                             struct diag *diag)
{
    const struct applier_ops *ops = c->applier.ops;
    void *self = c->applier.self;
    size_t unit = 0;
    enum status status = ops->begin(self, c->env->db, c->units, c->nunits, 0,
                                    diag);

    for (; status == STATUS_OK && unit < c->nunits; unit++) {
        enum apply_verdict verdict = APPLY_DONE;

        status = ops->apply(self, c->env->db, unit, &verdict, failure, diag);
        if (status != STATUS_OK || verdict == APPLY_DONE)
            continue;
        status = diag_set(diag, STATUS_FAILED,
                          "the message at position %lld cannot be applied: %s",
                          (long long)c->units[unit].message->position,
                          failure->reason);
        break;
    }
    if (status == STATUS_OK)
        status = ops->finish(self, c->env->db, failure, diag);
    if (status == STATUS_OK)
        status = db_flush(c->env->db, NULL, diag);
    ops->end(self);
    return status;
}

static enum status key_pages(struct consumer *c, struct text key,
                             int64_t *applied, struct failure *failure,
                             struct diag *diag)
{
    const struct consumer_env *env = c->env;
    struct event_filter filter = c->filter;
    int partition = hash_partition(key, env->partitions);
    struct event_range range = {
        .after = 0,
        .upto = c->stored.position[partition],
        .limit = env->batch,
        .byte_limit = env->batch_bytes,
    };
    enum status status = STATUS_OK;

    if (!c->own_key)
        filter.key = key;
    while (status == STATUS_OK && range.after < range.upto) {
        struct recorded keyless = {.count = 0};

        c->nunits = 0;
        status = event_page_read(c->topic, env->db, &filter, &range, &c->page,
                                 diag);
        if (status == STATUS_OK)
            status = read_keyless(c, &keyless, diag);
        if (status == STATUS_OK)
            status = key_units(c, key, partition, &keyless, failure, diag);
        if (status == STATUS_OK && c->nunits > 0)
            status = key_apply(c, failure, diag);
        *applied += (int64_t)c->nunits;
        range.after = c->page.through;
    }
    return status;
}

/* One read model by another declaration than its neighbours would be the
 * mixture that a start halts the consumer for. */
static enum status refuse_change(const struct consumer *c, struct diag *diag)
{
    struct fingerprint_change change = fingerprint_compare(
        registry_fingerprint(&c->row), c->declared);
    struct buffer what = BUFFER_EMPTY;

    if (change.verdict != FINGERPRINT_CHANGED)
        return STATUS_OK;
    fingerprint_describe(&change, &what);
    (void)diag_set(diag, STATUS_REFUSED,
                   "%s '%s' was derived by another declaration: %s changed "
                   "since, and one read model of the new kind among the "
                   "others would mix the two; `moontide rebuild %s` without "
                   "--key derives all of them anew",
                   c->name.type, c->name.name, what.data, c->name.name);
    buffer_free(&what);
    return STATUS_REFUSED;
}

/* What messages that are gone have made cannot be made again. */
static enum status refuse_gap(const struct consumer *c, struct text key,
                              struct diag *diag)
{
    struct high_water_mark mark;
    enum status status = high_water_mark_read(c->env->db, c->env->catalog,
                                              c->source, &mark, diag);

    if (status != STATUS_OK || mark.start == 0)
        return status;
    return diag_set(diag, STATUS_REFUSED,
                    "topic '%s' no longer holds positions up to %lld, so "
                    "'%.*s' of %s '%s' cannot be made anew from all of its "
                    "messages: it stays as it is",
                    c->source, (long long)mark.start, (int)key.len, key.data,
                    c->name.type, c->name.name);
}

static enum status key_within(struct consumer *c,
                              const struct checkpoint_lock *lock,
                              struct text key, int64_t *applied,
                              struct failure *failure, struct diag *diag)
{
    const struct consumer_env *env = c->env;
    const struct db_value params[] = {db_string(c->row.id),
                                      db_string(c->source), db_text_value(key)};
    enum status status;

    if (lock->replay_through != CHECKPOINT_NONE)
        return diag_set(diag, STATUS_REFUSED,
                        "%s '%s' is being rebuilt as a whole: its keys come "
                        "with that",
                        c->name.type, c->name.name);
    status = refuse_change(c, diag);
    if (status == STATUS_OK)
        status = refuse_gap(c, key, diag);
    if (status != STATUS_OK)
        return status;
    status = skips_read(env->db, env->catalog, c->row.id, c->source, 0,
                        INT64_MAX, &c->skips, diag);
    if (status == STATUS_OK)
        status = db_queue(env->db,
                          catalog_sql(env->catalog, SQL_UNDELIVERED_CLEAR_KEY),
                          params, 3, DB_ANY_ROWS, -1, diag);
    if (status == STATUS_OK)
        status = c->applier.ops->remove(c->applier.self, env->db, key, diag);
    if (status == STATUS_OK)
        status = db_flush(env->db, NULL, diag);
    if (status == STATUS_OK)
        status = key_pages(c, key, applied, failure, diag);
    return status;
}

enum status rebuild_key(struct consumer *c, struct text key, int64_t *applied,
                        struct failure *failure, struct diag *diag)
{
    struct checkpoint_lock lock = {.epoch = 0};
    enum status status;

    *applied = 0;
    if (c->applier.ops->remove == NULL)
        return diag_set(diag, STATUS_REFUSED,
                        "'%s' keeps no state per key: only the whole of it "
                        "can be rebuilt",
                        c->name.name);
    status = db_begin(c->env->db, diag);
    if (status != STATUS_OK)
        return status;
    status = checkpoint_lock(c->env->db, c->env->catalog, c->row.id, c->source,
                             &c->stored, &lock, diag);
    if (status == STATUS_OK)
        status = key_within(c, &lock, key, applied, failure, diag);
    if (status == STATUS_OK)
        status = db_commit(c->env->db, NULL, diag);
    if (status != STATUS_OK)
        db_rollback(c->env->db);
    c->applier.ops->end(c->applier.self);
    return status;
}
