#include "consumer/operate_letters.h"

#include "consumer/letter_change.h"
#include "consumer/operation.h"
#include "consumer/undelivered.h"

/* The letters of one topic. */
struct change_part {
    size_t consumer; /* in the result */
    struct letter_span span;
};

struct change {
    const char *consumer; /* NULL: any */
    struct letter_filter filter;
    bool deletes;
    struct letters_result *result;
    struct change_part *parts; /* by consumer */
    size_t nparts;
};

void letters_result_free(struct letters_result *result)
{
    arena_free(&result->arena);
}

/* --- looking -------------------------------------------------------------- */

struct listing {
    const char *consumer;
    struct letter_filter filter;
    size_t limit;
    enum letter_detail detail;
    struct arena *arena;
    struct letters *letters;
};

static enum status list(struct operation *op, void *arg, struct diag *diag)
{
    struct listing *l = arg;
    enum status status = STATUS_OK;

    if (l->consumer != NULL) {
        status = operation_find(op, l->consumer, diag);
        l->filter.consumer_id = op->row.id;
    }
    if (status != STATUS_OK)
        return status;
    return letters_read(op->env->db, op->env->catalog, &l->filter, l->limit,
                        l->detail, l->arena, l->letters, diag);
}

enum status operate_list(const struct operate_env *env, const char *consumer,
                         const struct letter_filter *filter, size_t limit,
                         enum letter_detail detail, struct arena *arena,
                         struct letters *letters, struct diag *diag)
{
    struct listing l = {consumer, *filter, limit, detail, arena, letters};

    *letters = (struct letters){.items = NULL};
    return operation_look(env, list, &l, diag);
}

/* --- whose letters they are ----------------------------------------------- */

static size_t place_of(struct letters_result *result, struct db_rows *row)
{
    struct text id = db_get_text(row, 0);
    size_t last = result->nconsumers;

    if (last > 0 && text_equal(text_of(result->consumers[last - 1].id), id))
        return last - 1;
    result->consumers = arena_grow(&result->arena, result->consumers, last,
                                   sizeof(*result->consumers));
    result->consumers[last] = (struct letters_consumer){
        .id = arena_string(&result->arena, id),
        .type = arena_string(&result->arena, db_get_text(row, 1)),
        .name = arena_string(&result->arena, db_get_text(row, 2)),
    };
    result->nconsumers++;
    return last;
}

static enum status take_part(void *arg, struct db_rows *row, struct diag *diag)
{
    struct change *change = arg;
    struct letters_result *result = change->result;
    size_t consumer = place_of(result, row);

    (void)diag;
    change->parts = arena_grow(&result->arena, change->parts, change->nparts,
                               sizeof(*change->parts));
    change->parts[change->nparts++] = (struct change_part){
        .consumer = consumer,
        .span =
            {
                .consumer_id = result->consumers[consumer].id,
                .source = arena_string(&result->arena, db_get_text(row, 3)),
                .through = db_get_int64(row, 4),
            },
    };
    return STATUS_OK;
}

/* What comes later is not meant: a host may go on adding to it. */
static enum status find_parts(struct operation *op, void *arg,
                              struct diag *diag)
{
    struct change *change = arg;
    struct db_value param = db_null();
    enum status status = STATUS_OK;

    if (change->consumer != NULL) {
        status = operation_find(op, change->consumer, diag);
        if (status != STATUS_OK || op->row.id[0] == '\0')
            return status;
        param = db_string(op->row.id);
    }
    return db_rows_each(op->env->db,
                        catalog_sql(op->env->catalog, SQL_LETTERS_CONSUMERS),
                        &param, 1, take_part, change, diag);
}

/* --- retry and delete ----------------------------------------------------- */

/* One transaction, which may be run more than once. */
struct page {
    const struct change *change;
    const struct letters_consumer *consumer;
    struct letter_span wanted;
    struct letter_span span;         /* what it has done of that */
    struct letters_consumer counted; /* of it */
};

static bool is_due(const struct letter *letter)
{
    return strcmp(letter->status,
                  undelivered_status_word(UNDELIVERED_FAILED)) == 0 &&
           letter->failures == 0 && letter->next_retry_at == 0;
}

/* Counts a letter; false when there is nothing to do about it. */
static bool take(struct page *page, const struct letter *letter)
{
    bool deletes = page->change->deletes;

    if (!deletes && !letter_failed(letter)) {
        page->counted.waiting++;
        return false;
    }
    if (!deletes && is_due(letter)) {
        page->counted.due++;
        return false;
    }
    page->counted.changed++;
    return true;
}

static enum status read_page(struct operation *op, struct page *page,
                             struct letters *letters, struct diag *diag)
{
    const struct operate_env *env = op->env;
    size_t kept = 0;
    enum status status = letter_span_cut(env->db, env->catalog, &page->span,
                                         NULL, OPERATION_ROWS, diag);

    if (status == STATUS_OK)
        status = letter_span_read(env->db, env->catalog, &page->change->filter,
                                  &page->span, LETTER_BARE, &op->arena, letters,
                                  diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < letters->count; i++)
        if (take(page, &letters->items[i]))
            letters->items[kept++] = letters->items[i];
    letters->count = kept;
    return STATUS_OK;
}

static enum status read_state(struct operation *op, struct page *page,
                              struct diag *diag)
{
    const struct consumer_name name = {page->consumer->type,
                                       page->consumer->name};
    struct consumer_row row;
    enum status status = registry_read(op->env->db, op->env->catalog, &name,
                                       &row, diag);

    page->counted.state = row.state;
    page->counted.halt_reason = row.halt_reason;
    return status;
}

static enum status change_page(struct operation *op, void *arg,
                               struct diag *diag)
{
    struct page *page = arg;
    const struct operate_env *env = op->env;
    struct letters letters;
    int64_t rows;
    enum status status = operation_lock(op, page->wanted.consumer_id, diag);

    page->span = page->wanted;
    page->counted = (struct letters_consumer){.id = page->consumer->id};
    if (status == STATUS_OK)
        status = read_page(op, page, &letters, diag);
    if (status != STATUS_OK)
        return status;
    status = page->change->deletes
                 ? letters_skip(env, &letters, false, &op->arena, &rows, diag)
                 : letters_retry(env, &letters, &op->arena, diag);
    return status == STATUS_OK ? read_state(op, page, diag) : status;
}

static void add_page(struct letters_result *result,
                     struct letters_consumer *consumer, const struct page *page)
{
    consumer->state = page->counted.state;
    consumer->halt_reason = page->counted.halt_reason;
    consumer->changed += page->counted.changed;
    consumer->due += page->counted.due;
    consumer->waiting += page->counted.waiting;
    result->changed += page->counted.changed;
    result->due += page->counted.due;
    result->waiting += page->counted.waiting;
}

/* All of one part, page by page. */
static enum status change_part(const struct operate_env *env,
                               struct change *change,
                               const struct change_part *part,
                               struct diag *diag)
{
    struct letters_consumer *consumer = &change->result
                                             ->consumers[part->consumer];
    struct page page = {
        .change = change,
        .consumer = consumer,
        .wanted = part->span,
    };
    enum status status = STATUS_OK;

    if (change->filter.position != 0) {
        page.wanted.after = change->filter.position - 1;
        if (page.wanted.through > change->filter.position)
            page.wanted.through = change->filter.position;
    }
    while (status == STATUS_OK && page.wanted.after < page.wanted.through) {
        status = operation_run(env, NULL, false, change_page, &page, diag);
        if (status == STATUS_OK)
            add_page(change->result, consumer, &page);
        page.wanted.after = page.span.through;
    }
    return status;
}

/* Who has no letter that was meant is not told of. */
static void drop_untouched(struct letters_result *result)
{
    size_t kept = 0;

    for (size_t i = 0; i < result->nconsumers; i++) {
        const struct letters_consumer *c = &result->consumers[i];

        if (c->changed + c->due + c->waiting > 0)
            result->consumers[kept++] = *c;
    }
    result->nconsumers = kept;
}

static enum status run_change(const struct operate_env *env,
                              struct change *change, struct diag *diag)
{
    struct letters_result *result = change->result;
    enum status status;

    *result = (struct letters_result){.arena = ARENA_EMPTY};
    status = operation_look(env, find_parts, change, diag);
    for (size_t i = 0; status == STATUS_OK && i < change->nparts; i++)
        status = change_part(env, change, &change->parts[i], diag);
    if (status == STATUS_OK) {
        drop_untouched(result);
        return STATUS_OK;
    }
    (void)operation_tell_done(result->changed,
                              change->deletes ? "messages were deleted"
                                              : "messages were retried",
                              diag);
    letters_result_free(result);
    return status;
}

enum status operate_retry(const struct operate_env *env, const char *consumer,
                          const struct letter_filter *filter,
                          struct letters_result *result, struct diag *diag)
{
    struct change change = {
        .consumer = consumer,
        .filter = *filter,
        .result = result,
    };

    return run_change(env, &change, diag);
}

enum status operate_delete(const struct operate_env *env, const char *consumer,
                           const struct letter_filter *filter,
                           struct letters_result *result, struct diag *diag)
{
    struct change change = {
        .consumer = consumer,
        .filter = *filter,
        .deletes = true,
        .result = result,
    };

    return run_change(env, &change, diag);
}
