#include "consumer/charge.h"

#include "consumer/charge_deadline.h"
#include "consumer/deadline.h"
#include "consumer/outcome.h"
#include "consumer/registry.h"

#include <stdio.h>
#include <string.h>

/* What the charge of one attempt works on. */
struct charge {
    const struct consumer_env *env;
    const struct attempt *attempt;
    struct failure failure; /* the reason that is recorded */
    struct consumer_row row;
    struct checkpoints stored;
    struct checkpoint_lock lock;
    bool *held; /* by partition: the dead instance holds it */
    size_t nheld;
    struct event_page page;
    struct undelivered_recorded *rows; /* at the message's position */
    size_t nrows;
    struct arena arena;
    struct undelivered_entry *entries; /* to insert */
    size_t nentries;
    struct undelivered_failed *failed; /* to raise */
    size_t nfailed;
    int64_t now; /* deadline_clock */
};

/* --- the reason ----------------------------------------------------------- */

static const char *const kind_words[] = {
    [ATTEMPT_HANDLER] = "handler",           [ATTEMPT_KEY] = "key function",
    [ATTEMPT_ON_ERROR] = "on_error",         [ATTEMPT_RESET] = "reset",
    [ATTEMPT_DEADLINE] = "deadline handler",
};

static void reason_set(struct charge *charge, const struct attempt_end *end)
{
    const struct attempt *a = charge->attempt;
    const char *word = kind_words[a->kind];
    const char *colon = a->where[0] != '\0' ? ": " : "";
    char limit[CLOCK_DURATION_SIZE];

    clock_format_duration(end->limit_us, limit);
    if (end->hung)
        failure_set(&charge->failure, false, "timeout",
                    "%s%s%s ran longer than limits.time = %s; its worker had "
                    "to be ended",
                    a->where, colon, word, limit);
    else if (end->signal != 0)
        failure_set(&charge->failure, false, "crash",
                    "%s%sthe worker ended in its %s (signal %d, %s)", a->where,
                    colon, word, end->signal, strsignal(end->signal));
    else
        failure_set(&charge->failure, false, "crash",
                    "%s%sthe worker ended in its %s (exit code %d)", a->where,
                    colon, word, end->exit_code);
}

/* --- what is there -------------------------------------------------------- */

static enum status read_held(struct charge *charge, const char *instance_id,
                             struct diag *diag)
{
    const struct consumer_env *env = charge->env;
    const struct db_value params[] = {db_string(charge->attempt->type),
                                      db_string(charge->attempt->name),
                                      db_string(instance_id)};
    struct db_rows *rows;
    bool more = false;
    enum status status;

    charge->held = arena_alloc_zero(&charge->arena, (size_t)env->partitions *
                                                        sizeof(*charge->held));
    status = db_query(env->db, catalog_sql(env->catalog, SQL_CHARGE_PARTITIONS),
                      params, 3, &rows, diag);
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        int64_t partition = db_get_int64(rows, 0);

        if (partition < 0 || partition >= env->partitions)
            continue;
        charge->held[partition] = true;
        charge->nheld++;
    }
    db_rows_close(rows);
    return status;
}

/* The message as its topic holds it; it may be gone from there. */
static enum status read_message(struct charge *charge,
                                const struct message **message,
                                struct diag *diag)
{
    const struct consumer_env *env = charge->env;
    const struct event_filter all = {.ntypes = 0};
    const struct event_range range = {
        .after = charge->attempt->position - 1,
        .upto = charge->attempt->position,
        .limit = 1,
        .byte_limit = 1,
    };
    struct topic *topic = topics_find(&env->topics, charge->attempt->source);
    enum status status = STATUS_OK;

    *message = NULL;
    if (topic != NULL)
        status = event_page_read(topic, env->db, &all, &range, &charge->page,
                                 diag);
    if (status == STATUS_OK && charge->page.count == 1 &&
        charge->page.messages[0].position == charge->attempt->position &&
        memcmp(charge->page.messages[0].id.bytes,
               charge->attempt->message_id.bytes,
               sizeof(charge->attempt->message_id.bytes)) == 0)
        *message = &charge->page.messages[0];
    return status;
}

/* False when the attempt is nobody's concern any more. */
static enum status look(struct charge *charge, const char *instance_id,
                        bool *counts, struct diag *diag)
{
    const struct consumer_env *env = charge->env;
    const struct attempt *a = charge->attempt;
    const struct consumer_name name = {a->type, a->name};
    enum status status = read_held(charge, instance_id, diag);

    *counts = false;
    if (status != STATUS_OK || charge->nheld == 0)
        return status;
    if (a->kind != ATTEMPT_KEY &&
        (a->partition >= env->partitions || !charge->held[a->partition]))
        return STATUS_OK;
    status = registry_read(env->db, env->catalog, &name, &charge->row, diag);
    if (status != STATUS_OK || !charge->row.exists ||
        strcmp(charge->row.id, a->consumer_id) != 0)
        return status;
    status = checkpoint_lock(env->db, env->catalog, charge->row.id, a->source,
                             &charge->stored, &charge->lock, diag);
    if (status == STATUS_REFUSED) /* it was unsubscribed meanwhile */
        return STATUS_OK;
    if (status != STATUS_OK || charge->lock.epoch != a->epoch)
        return status;
    *counts = true;
    return undelivered_recorded(
        env->db, env->catalog, charge->row.id, a->source, a->position - 1,
        a->position, &charge->arena, &charge->rows, &charge->nrows, diag);
}

/* --- what is written ------------------------------------------------------ */

/* A death in on_error is what a raise in it is: it says nothing, which means
 * halt. Anything else is tried again, and whoever does so looks at the budget.
 */
static struct undelivered_entry entry_of(const struct charge *charge,
                                         const struct message *message)
{
    const struct attempt *a = charge->attempt;
    struct undelivered_entry entry = {
        .message = message,
        .status = UNDELIVERED_FAILED,
        .failure_count = a->attempt,
        .failure = &charge->failure,
    };

    if (a->kind == ATTEMPT_ON_ERROR)
        entry.status = UNDELIVERED_HALTED;
    else if (retry_policy_allows(&a->retry, a->attempt))
        entry.next_retry_at = outcome_retry_at(&a->retry, message, a->attempt,
                                               charge->now);
    return entry;
}

/* What waits for an operator, or has counted this attempt, stays. A failure
 * that on_error was to judge is counted already, and so is an attempt that was
 * made with care: there is only more to tell of it now. */
static bool counts_more(const struct charge *charge,
                        const struct undelivered_recorded *row)
{
    const struct attempt *a = charge->attempt;
    bool at_rest = row->status == UNDELIVERED_HALTED ||
                   row->status == UNDELIVERED_DEAD_LETTER ||
                   (row->status == UNDELIVERED_DEAD_LETTER_KEY &&
                    row->reason.data != NULL);

    if (at_rest)
        return false;
    return a->kind == ATTEMPT_ON_ERROR || row->failure_count < a->attempt ||
           (row->failure_count == a->attempt &&
            text_equal(row->reason, text_of(FAILURE_UNTOLD)));
}

static void raise_row(struct charge *charge,
                      const struct undelivered_recorded *row,
                      const struct undelivered_entry *entry)
{
    if (counts_more(charge, row))
        charge->failed[charge->nfailed++] = (struct undelivered_failed){row->id,
                                                                        entry};
}

static void insert_for(struct charge *charge,
                       const struct undelivered_entry *entry, int partition)
{
    struct undelivered_entry *added = &charge->entries[charge->nentries++];

    *added = *entry;
    added->partition = partition;
}

/* A row that no key has, in a partition that is held here. */
static bool is_ours_without_key(const struct charge *charge,
                                const struct undelivered_recorded *row)
{
    return row->unresolved && row->partition >= 0 &&
           row->partition < charge->env->partitions &&
           charge->held[row->partition];
}

/* Of a message whose keys were not told there is a row for each partition
 * that met it; all of them stand for the same attempt. */
static enum status charge_unresolved(struct charge *charge,
                                     struct undelivered_entry *entry,
                                     struct diag *diag)
{
    const struct consumer_env *env = charge->env;
    const struct attempt *a = charge->attempt;
    struct undelivered_keys keys;
    enum status status;

    entry->unresolved = true;
    undelivered_keys_init(&keys, env->partitions);
    status = undelivered_keys_read(env->db, env->catalog, charge->row.id,
                                   a->source, &keys, diag);
    for (size_t i = 0; status == STATUS_OK && i < charge->nrows; i++) {
        const struct undelivered_recorded *row = &charge->rows[i];

        if (!is_ours_without_key(charge, row))
            continue;
        keys.blocked[row->partition] = true; /* it has its row */
        raise_row(charge, row, entry);
    }
    for (int p = 0; status == STATUS_OK && p < env->partitions; p++)
        if (charge->held[p] && !keys.blocked[p] &&
            charge->stored.position[p] <= a->after)
            insert_for(charge, entry, p);
    undelivered_keys_free(&keys);
    return status;
}

/* A key that was told only by the retry of such a message stands for its row.
 */
static const struct undelivered_recorded *row_of(const struct charge *charge)
{
    const struct attempt *a = charge->attempt;
    const struct undelivered_recorded *found = NULL;

    for (size_t i = 0; i < charge->nrows; i++) {
        const struct undelivered_recorded *row = &charge->rows[i];

        if (row->partition != a->partition)
            continue;
        if (!row->unresolved && text_equal(row->key, text_of(a->key)))
            return row;
        if (row->unresolved && a->after == ATTEMPT_RETRY)
            found = row;
    }
    return found;
}

/* An attempt that was made with care was counted before the key function told
 * the keys: that row stands for it, and one of a key beside it would have the
 * message applied twice. A page meets no other row without keys in a partition
 * that it reads. */
static bool charge_counted(struct charge *charge,
                           struct undelivered_entry *entry)
{
    bool found = false;

    if (charge->attempt->after == ATTEMPT_RETRY)
        return false;
    for (size_t i = 0; i < charge->nrows; i++) {
        const struct undelivered_recorded *row = &charge->rows[i];

        if (!is_ours_without_key(charge, row))
            continue;
        entry->unresolved = found = true;
        raise_row(charge, row, entry);
    }
    return found;
}

static void charge_key(struct charge *charge, struct undelivered_entry *entry)
{
    const struct attempt *a = charge->attempt;
    const struct undelivered_recorded *row = row_of(charge);

    if (row != NULL) {
        entry->unresolved = row->unresolved;
        raise_row(charge, row, entry);
        return;
    }
    if (charge_counted(charge, entry))
        return;
    entry->key = a->has_key ? text_of(a->key) : TEXT_NONE;
    if (a->after != ATTEMPT_RETRY &&
        charge->stored.position[a->partition] < a->position)
        insert_for(charge, entry, a->partition);
}

static void tell(const struct charge *charge, const struct message *message)
{
    const struct attempt *a = charge->attempt;
    char id[UUID_TEXT_LEN + 1], cause[FAILURE_CAUSE_SIZE];
    const struct log_about about = {
        .consumer = a->name,
        .topic = a->source,
        .position = a->position,
        .message_id = id,
        .alike = cause,
    };

    uuid_format(&a->message_id, id);
    failure_cause(&charge->failure, cause);
    if (a->kind == ATTEMPT_ON_ERROR)
        log_write(charge->env->log, LOG_ERROR, &about,
                  "could not apply %.*s: %s; it halts the consumer",
                  TEXT_ARGS(message->type), charge->failure.reason);
    else
        log_write(charge->env->log, LOG_WARN, &about,
                  "could not apply %.*s: %s; attempt %d of %d",
                  TEXT_ARGS(message->type), charge->failure.reason, a->attempt,
                  a->retry.attempts);
}

/* The retry's time and the row's copy need the message: a row has a copy of
 * its own where the topic has forgotten it. */
static enum status record(struct charge *charge, const struct message *message,
                          struct diag *diag)
{
    const struct consumer_env *env = charge->env;
    const struct attempt *a = charge->attempt;
    const struct message gone = {
        .position = a->position,
        .id = a->message_id,
        .type = TEXT_LITERAL("a message"),
    };
    struct undelivered_entry entry;
    enum status status = deadline_clock(env->db, env->clock, &charge->now,
                                        diag);

    if (status != STATUS_OK)
        return status;
    entry = entry_of(charge, message != NULL ? message : &gone);
    charge->entries = arena_alloc(&charge->arena,
                                  (size_t)env->partitions * sizeof(entry));
    charge->failed = arena_alloc(&charge->arena,
                                 (charge->nrows + 1) * sizeof(*charge->failed));
    if (a->kind == ATTEMPT_KEY)
        status = charge_unresolved(charge, &entry, diag);
    else
        charge_key(charge, &entry);
    if (message == NULL)
        charge->nentries = 0; /* nobody will meet it */
    if (status == STATUS_OK)
        status = undelivered_fail(env->db, env->names, charge->failed,
                                  charge->nfailed, &charge->arena, diag);
    if (status == STATUS_OK)
        status = undelivered_record(
            env->db, env->names, charge->row.id, a->source, charge->entries,
            charge->nentries, env->ids, charge->now, &charge->arena, diag);
    if (status == STATUS_OK && entry.status == UNDELIVERED_HALTED &&
        charge->nentries + charge->nfailed > 0 &&
        charge->lock.state == CONSUMER_RUNNING)
        status = registry_set_state(env->db, env->catalog, &charge->row,
                                    CONSUMER_HALTED, HALT_APPLY_ERROR,
                                    charge->now, diag);
    return status;
}

static enum status charge_within(struct charge *charge, const char *instance_id,
                                 const struct message **message,
                                 struct diag *diag)
{
    bool counts;
    enum status status = look(charge, instance_id, &counts, diag);

    if (status != STATUS_OK || !counts)
        return status;
    status = read_message(charge, message, diag);
    if (status == STATUS_OK)
        status = record(charge, *message, diag);
    return status;
}

enum status charge_attempt(const struct consumer_env *env,
                           const char *instance_id,
                           const struct attempt *attempt,
                           const struct attempt_end *end, bool *charged,
                           struct diag *diag)
{
    struct charge charge = {.env = env, .attempt = attempt};
    const struct message *message = NULL;
    enum status status;

    *charged = false;
    reason_set(&charge, end);
    if (attempt->kind == ATTEMPT_DEADLINE)
        return charge_deadline(env, attempt, &charge.failure, charged, diag);
    if (attempt->kind == ATTEMPT_RESET || attempt->position < 1)
        return STATUS_OK;
    checkpoints_init(&charge.stored, env->partitions);
    status = db_begin(env->db, diag);
    if (status == STATUS_OK) {
        status = charge_within(&charge, instance_id, &message, diag);
        if (status == STATUS_OK && charge.nentries + charge.nfailed > 0) {
            status = db_commit(env->db, NULL, diag);
            *charged = status == STATUS_OK;
        }
        if (!*charged)
            db_rollback(env->db);
    }
    if (*charged)
        tell(&charge, message != NULL ? message
                                      : &(const struct message){
                                            .type = TEXT_LITERAL("a message"),
                                        });
    checkpoints_free(&charge.stored);
    event_page_free(&charge.page);
    arena_free(&charge.arena);
    return status;
}
