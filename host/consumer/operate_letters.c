#include "consumer/operate_letters.h"

#include "consumer/letter_change.h"
#include "consumer/operation.h"
#include "consumer/undelivered.h"

struct change {
    const char *consumer; /* NULL: any */
    struct letter_filter filter;
    bool deletes;
    struct letters_result *result;
};

void letters_result_free(struct letters_result *result)
{
    arena_free(&result->arena);
}

/* --- looking -------------------------------------------------------------- */

static enum status list_in_view(struct operation *op, const char *consumer,
                                struct letter_filter filter, size_t limit,
                                enum letter_detail detail, struct arena *arena,
                                struct letters *letters, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (consumer != NULL) {
        status = operation_find(op, consumer, diag);
        filter.consumer_id = op->row.id;
    }
    if (status != STATUS_OK)
        return status;
    return letters_read(op->env->db, op->env->catalog, &filter, limit, detail,
                        arena, letters, diag);
}

enum status operate_list(const struct operate_env *env, const char *consumer,
                         const struct letter_filter *filter, size_t limit,
                         enum letter_detail detail, struct arena *arena,
                         struct letters *letters, struct diag *diag)
{
    struct operation op = {.env = env, .arena = ARENA_EMPTY};
    enum status status = db_begin_read(env->db, diag);

    *letters = (struct letters){.items = NULL};
    if (status == STATUS_OK)
        status = list_in_view(&op, consumer, *filter, limit, detail, arena,
                              letters, diag);
    db_rollback(env->db);
    arena_free(&op.arena);
    return status;
}

/* --- locking -------------------------------------------------------------- */

struct id_list {
    const char **items;
    size_t count;
};

/* Every consumer that has letters, in the order in which all verbs lock. */
static enum status read_ids(struct operation *op, struct id_list *list,
                            struct diag *diag)
{
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(
        op->env->db, catalog_sql(op->env->catalog, SQL_LETTERS_CONSUMERS), NULL,
        0, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        if ((list->count & (list->count - 1)) == 0) { /* full: 0, 1, 2, 4 */
            size_t room = list->count == 0 ? 1 : 2 * list->count;
            const char **bigger = arena_alloc(&op->arena,
                                              room * sizeof(*bigger));

            if (list->count > 0)
                memcpy(bigger, list->items, list->count * sizeof(*bigger));
            list->items = bigger;
        }
        list->items[list->count++] = arena_string(&op->arena,
                                                  db_get_text(rows, 0));
    }
    db_rows_close(rows);
    return status;
}

static enum status lock_consumers(struct operation *op,
                                  const struct change *change,
                                  struct id_list *list, struct diag *diag)
{
    enum status status;

    if (change->consumer == NULL) {
        status = read_ids(op, list, diag);
    } else {
        status = operation_find(op, change->consumer, diag);
        list->items = arena_alloc(&op->arena, sizeof(*list->items));
        if (status == STATUS_OK && op->row.id[0] != '\0')
            list->items[list->count++] = op->row.id;
    }
    for (size_t i = 0; status == STATUS_OK && i < list->count; i++)
        status = operation_lock(op, list->items[i], diag);
    return status;
}

static bool is_locked(const struct id_list *list, const char *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], id) == 0)
            return true;
    return false;
}

/* --- the result ----------------------------------------------------------- */

static void begin_result(struct letters_result *result)
{
    struct arena arena = result->arena;

    arena_reset(&arena);
    *result = (struct letters_result){.arena = arena};
}

/* Letters come by consumer. */
static struct letters_consumer *consumer_of(struct letters_result *result,
                                            const struct letter *letter)
{
    struct letters_consumer *bigger;
    struct letters_consumer *last =
        result->nconsumers > 0 ? &result->consumers[result->nconsumers - 1]
                               : NULL;

    if (last != NULL && strcmp(last->id, letter->consumer_id) == 0)
        return last;
    bigger = arena_alloc(&result->arena,
                         (result->nconsumers + 1) * sizeof(*bigger));
    if (result->nconsumers > 0)
        memcpy(bigger, result->consumers, result->nconsumers * sizeof(*bigger));
    result->consumers = bigger;
    last = &bigger[result->nconsumers++];
    *last = (struct letters_consumer){
        .id = arena_string(&result->arena, text_of(letter->consumer_id)),
        .type = arena_string(&result->arena, text_of(letter->consumer_type)),
        .name = arena_string(&result->arena, text_of(letter->consumer)),
    };
    return last;
}

static enum status read_states(struct operation *op,
                               struct letters_result *result, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < result->nconsumers; i++) {
        struct letters_consumer *consumer = &result->consumers[i];
        const struct consumer_name name = {consumer->type, consumer->name};
        struct consumer_row row;

        status = registry_read(op->env->db, op->env->catalog, &name, &row,
                               diag);
        consumer->state = row.state;
        consumer->halt_reason = row.halt_reason;
    }
    return status;
}

/* --- retry and delete ----------------------------------------------------- */

static bool is_due(const struct letter *letter)
{
    return strcmp(letter->status,
                  undelivered_status_word(UNDELIVERED_FAILED)) == 0 &&
           letter->failures == 0 && letter->next_retry_at == 0;
}

/* Counts a letter; false when there is nothing to do about it. */
static bool take(const struct change *change, const struct letter *letter)
{
    struct letters_result *result = change->result;
    struct letters_consumer *consumer = consumer_of(result, letter);

    if (!change->deletes && !letter_failed(letter)) {
        consumer->waiting++;
        result->waiting++;
        return false;
    }
    if (!change->deletes && is_due(letter)) {
        consumer->due++;
        result->due++;
        return false;
    }
    consumer->changed++;
    result->changed++;
    return true;
}

static enum status change_letters(struct operation *op, void *arg,
                                  struct diag *diag)
{
    struct change *change = arg;
    const struct operate_env *env = op->env;
    struct letter_filter filter = change->filter;
    struct id_list locked = {.items = NULL};
    struct letters letters;
    size_t kept = 0;
    int64_t rows;
    enum status status = lock_consumers(op, change, &locked, diag);

    if (status != STATUS_OK)
        return status;
    if (change->consumer != NULL)
        filter.consumer_id = op->row.id;
    status = letters_read(env->db, env->catalog, &filter, SIZE_MAX, LETTER_BARE,
                          &op->arena, &letters, diag);
    if (status != STATUS_OK)
        return status;
    begin_result(change->result);
    for (size_t i = 0; i < letters.count; i++)
        if (is_locked(&locked, letters.items[i].consumer_id) &&
            take(change, &letters.items[i]))
            letters.items[kept++] = letters.items[i];
    letters.count = kept;
    status = change->deletes ? letters_skip(env->db, env->catalog, &letters,
                                            false, &op->arena, &rows, diag)
                             : letters_retry(env->db, env->catalog, &letters,
                                             &op->arena, diag);
    return status == STATUS_OK ? read_states(op, change->result, diag) : status;
}

static enum status run_change(const struct operate_env *env,
                              struct change *change, struct diag *diag)
{
    enum status status;

    *change->result = (struct letters_result){.arena = ARENA_EMPTY};
    status = operation_run(env, NULL, change_letters, change, diag);
    if (status != STATUS_OK)
        letters_result_free(change->result);
    return status;
}

enum status operate_retry(const struct operate_env *env, const char *consumer,
                          const struct letter_filter *filter,
                          struct letters_result *result, struct diag *diag)
{
    struct change change = {consumer, *filter, false, result};

    return run_change(env, &change, diag);
}

enum status operate_delete(const struct operate_env *env, const char *consumer,
                           const struct letter_filter *filter,
                           struct letters_result *result, struct diag *diag)
{
    struct change change = {consumer, *filter, true, result};

    return run_change(env, &change, diag);
}
