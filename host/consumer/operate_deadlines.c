#include "consumer/operate_deadlines.h"

#include "base/json_member.h"
#include "consumer/operation.h"
#include "consumer/operation_walk.h"

#include <inttypes.h>

enum { FILTER_PARAMS = 6 };

bool deadline_filter_narrows(const struct deadline_filter *f)
{
    return f->id != NULL || f->type != NULL || f->saga_id != NULL ||
           f->name != NULL || f->status != NULL || f->due_before != 0;
}

static void bind(const struct deadline_filter *f,
                 struct db_value params[FILTER_PARAMS + 1])
{
    params[0] = db_string(f->id);
    params[1] = db_string(f->type);
    params[2] = db_string(f->saga_id);
    params[3] = db_string(f->name);
    params[4] = db_string(f->status);
    params[5] = f->due_before != 0 ? db_timestamp(f->due_before) : db_null();
}

static enum status count(const struct operate_env *env,
                         enum sql_statement statement,
                         const struct deadline_filter *filter, int64_t *count,
                         struct diag *diag)
{
    struct db_value params[FILTER_PARAMS + 1];
    bool found;

    *count = 0;
    bind(filter, params);
    return db_query_int64(env->db, catalog_sql(env->catalog, statement), params,
                          FILTER_PARAMS, count, &found, diag);
}

enum status operate_deadlines_count(const struct operate_env *env,
                                    const struct deadline_filter *filter,
                                    int64_t *total, struct diag *diag)
{
    return count(env, SQL_DEADLINES_COUNT, filter, total, diag);
}

/* --- list ----------------------------------------------------------------- */

struct listing {
    struct deadline_list *list;
    struct arena *arena;
    const struct deadline_filter *filter;
    size_t limit;
};

static struct text take(struct listing *l, struct db_rows *row, size_t column)
{
    return db_is_null(row, column)
               ? TEXT_NONE
               : arena_copy(l->arena, db_get_text(row, column));
}

/* Whatever somebody has written by hand is to be seen. */
static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct listing *l = arg;
    struct deadline_list *list = l->list;
    struct deadline_listed *item;
    struct deadline *d;
    struct text status;

    list->items = arena_grow(l->arena, list->items, list->count, sizeof(*item));
    item = &list->items[list->count++];
    d = &item->deadline;
    if (!uuid_parse(db_get_text(row, 0), &d->id) ||
        !uuid_parse(db_get_text(row, 1), &d->instance))
        return diag_set(diag, STATUS_PERMANENT,
                        "the id of a saga deadline is no UUID");
    item->type = take(l, row, 2);
    d->saga_id = take(l, row, 3);
    d->name = take(l, row, 4);
    d->partition = (int)db_get_int64(row, 5);
    d->due_at = db_get_timestamp(row, 6);
    status = db_get_text(row, 7);
    if (!deadline_status_parse(status, &item->status))
        return diag_set(diag, STATUS_PERMANENT,
                        "a saga deadline has the unknown status '" TEXT_FORMAT
                        "'",
                        TEXT_ARGS(status));
    d->attempts = (int)db_get_int64(row, 8);
    d->next_at = db_is_null(row, 9) ? 0 : db_get_timestamp(row, 9);
    d->reason = take(l, row, 10);
    d->payload = take(l, row, 11);
    d->message.metadata = take(l, row, 12);
    return STATUS_OK;
}

static enum status read_list(struct operation *op, void *arg, struct diag *diag)
{
    struct listing *l = arg;
    struct db_value params[FILTER_PARAMS + 1];
    enum status status;

    bind(l->filter, params);
    params[FILTER_PARAMS] = db_integer((int64_t)l->limit);
    status = db_rows_each(op->env->db,
                          catalog_sql(op->env->catalog, SQL_DEADLINES_LIST),
                          params, FILTER_PARAMS + 1, take_row, l, diag);
    if (status != STATUS_OK)
        return status;
    return count(op->env, SQL_DEADLINES_COUNT, l->filter, &l->list->total,
                 diag);
}

enum status operate_deadlines_list(const struct operate_env *env,
                                   const struct deadline_filter *filter,
                                   size_t limit, struct arena *arena,
                                   struct deadline_list *list,
                                   struct diag *diag)
{
    struct listing listing = {list, arena, filter, limit};

    *list = (struct deadline_list){.count = 0};
    return operation_look(env, read_list, &listing, diag);
}

/* --- change --------------------------------------------------------------- */

static enum status change(const struct operate_env *env,
                          const struct deadline_filter *filter,
                          enum deadline_order order, int64_t *changed,
                          struct diag *diag)
{
    static const enum sql_statement statements[] = {
        [DEADLINE_FIRE] = SQL_DEADLINES_FIRE,
        [DEADLINE_RETRY] = SQL_DEADLINES_RETRY,
        [DEADLINE_DELETE] = SQL_DEADLINES_DELETE,
    };
    struct db_value find[FILTER_PARAMS + 2], values[FILTER_PARAMS + 1];
    const struct operation_walk walk = {
        .last = SQL_DEADLINES_LAST,
        .page_end = SQL_DEADLINES_PAGE_END,
        .find = find,
        .nfind = FILTER_PARAMS + 2,
        .change = statements[order],
        .values = values,
        .nvalues = FILTER_PARAMS + (order == DEADLINE_DELETE ? 0 : 1),
        .done = order == DEADLINE_DELETE ? "deadlines were deleted"
                                         : "deadlines were made due",
    };
    int64_t now;
    enum status status = deadline_clock(env->db, env->clock, &now, diag);

    if (status != STATUS_OK)
        return status;
    bind(filter, find);
    find[FILTER_PARAMS] = db_integer(order);
    find[FILTER_PARAMS + 1] = db_timestamp(now);
    bind(filter, values);
    values[FILTER_PARAMS] = db_timestamp(now);
    return operation_walk_run(env, &walk, changed, diag);
}

struct left_alone {
    const struct deadline_filter *filter;
    enum deadline_order order;
    struct deadline_changed *changed;
};

/* What the verb does not touch although it is meant. */
static enum status count_left(struct operation *op, void *arg,
                              struct diag *diag)
{
    const struct left_alone *left = arg;
    struct deadline_filter dead = *left->filter;

    if (left->order == DEADLINE_DELETE)
        return count(op->env, SQL_DEADLINES_COUNT_HOST, left->filter,
                     &left->changed->of_host, diag);
    if (left->order != DEADLINE_FIRE)
        return STATUS_OK;
    if (dead.status == NULL)
        dead.status = deadline_status_word(DEADLINE_DEAD_LETTER);
    else if (strcmp(dead.status, deadline_status_word(DEADLINE_DEAD_LETTER)) !=
             0)
        return STATUS_OK;
    return count(op->env, SQL_DEADLINES_COUNT, &dead, &left->changed->dead,
                 diag);
}

enum status operate_deadlines_change(const struct operate_env *env,
                                     const struct deadline_filter *filter,
                                     enum deadline_order order,
                                     struct deadline_changed *changed,
                                     struct diag *diag)
{
    struct left_alone left = {filter, order, changed};
    enum status status;

    *changed = (struct deadline_changed){.changed = 0};
    status = change(env, filter, order, &changed->changed, diag);
    return status == STATUS_OK ? operation_look(env, count_left, &left, diag)
                               : status;
}

/* --- JSON ----------------------------------------------------------------- */

static void write_item(struct buffer *out, const struct deadline_listed *item,
                       bool whole)
{
    const struct deadline *d = &item->deadline;
    bool first = true;

    buffer_append_char(out, '{');
    json_member_id(out, &first, "id", &d->id);
    json_member_text(out, &first, "saga_type", item->type);
    json_member_text(out, &first, "saga_id", d->saga_id);
    json_member_text(out, &first, "name", d->name);
    json_member_time_or_null(out, &first, "due_at", d->due_at);
    json_member_text(out, &first, "status",
                     text_of(deadline_status_word(item->status)));
    json_member_int64(out, &first, "attempts", d->attempts);
    json_member_time_or_null(out, &first, "next_retry_at", d->next_at);
    json_member_text(out, &first, "failure_reason", d->reason);
    json_member_int64(out, &first, "partition", d->partition);
    if (whole) {
        json_member_id(out, &first, "instance_id", &d->instance);
        json_member_document(out, &first, "payload", d->payload);
        json_member_document(out, &first, "metadata", d->message.metadata);
    }
    buffer_append_char(out, '}');
}

void operate_deadlines_json(struct buffer *out,
                            const struct deadline_list *list, bool whole)
{
    buffer_append_string(out, "{\"deadlines\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            buffer_append_string(out, ",\n");
        write_item(out, &list->items[i], whole);
    }
    buffer_printf(out, "],\"total\":%" PRId64 "}", list->total);
}
