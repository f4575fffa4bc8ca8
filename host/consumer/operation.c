#include "consumer/operation.h"

#include "base/clock.h"
#include "topic/notify.h"

#include <inttypes.h>

/* How long a verb that met another transaction is tried again: a batch of slow
 * handlers may be in hand. */
#define TRY_FOR_US (30 * CLOCK_SECOND)

#define NAMES_MAX 128 /* consumers named in a suggestion */

/* --- finding the consumer ------------------------------------------------- */

struct candidates {
    const char *names[NAMES_MAX + 1];
    size_t count;
};

static void add_candidate(struct candidates *list, const char *name)
{
    if (list->count < NAMES_MAX)
        list->names[list->count++] = name;
    list->names[list->count] = NULL;
}

static bool is_projection(const char *type)
{
    return strcmp(type, CONSUMER_TYPE_PROJECTION) == 0;
}

static bool is_declared_as(const struct operate_env *env, const char *type,
                           const char *name)
{
    for (size_t i = 0; env->declared != NULL && env->declared[i] != NULL; i++)
        if (strcmp(env->declared[i], name) == 0 &&
            strcmp(env->types[i], type) == 0)
            return true;
    return false;
}

/* Which of several consumers of one name is meant: a declaration that became
 * one of another type leaves the rows of the former. The one that is declared,
 * or the one that was left; of two such the projection. */
static int rank(const struct operation *op, const char *type, const char *name)
{
    bool declared = is_declared_as(op->env, type, name);

    return 2 * (declared != op->left_first) + is_projection(type);
}

/* The row of that name. */
static enum status search(struct operation *op, const char *consumer,
                          struct candidates *list, struct diag *diag)
{
    const struct operate_env *env = op->env;
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(
        env->db, catalog_sql(env->catalog, SQL_STATUS_CONSUMERS), NULL, 0,
        &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        const char *type = arena_string(&op->arena, db_get_text(rows, 1));
        const char *name = arena_string(&op->arena, db_get_text(rows, 2));
        struct text id = db_get_text(rows, 0);

        add_candidate(list, name);
        if (strcmp(name, consumer) != 0 || id.len != UUID_TEXT_LEN ||
            (op->type != NULL &&
             rank(op, op->type, name) >= rank(op, type, name)))
            continue;
        op->type = type;
        op->name = name;
        memcpy(op->row.id, id.data, UUID_TEXT_LEN);
        op->row.id[UUID_TEXT_LEN] = '\0';
    }
    db_rows_close(rows);
    return status;
}

/* The type that the scripts declare the name with, NULL: they do not. */
static const char *declared_type(const struct operate_env *env,
                                 const char *name)
{
    for (size_t i = 0; env->declared != NULL && env->declared[i] != NULL; i++)
        if (strcmp(env->declared[i], name) == 0)
            return env->types[i];
    return NULL;
}

enum status operation_find(struct operation *op, const char *consumer,
                           struct diag *diag)
{
    const char *const *declared = op->env->declared;
    struct candidates list = {.count = 0};
    const char *near, *type = declared_type(op->env, consumer);
    enum status status = search(op, consumer, &list, diag);

    if (status != STATUS_OK ||
        (op->type != NULL && (op->left_first || type == NULL ||
                              is_declared_as(op->env, op->type, consumer))))
        return status;
    op->type = type;
    op->row.id[0] = '\0';
    if (op->type != NULL) {
        op->name = arena_string(&op->arena, text_of(consumer));
        return STATUS_OK;
    }
    for (size_t i = 0; declared != NULL && declared[i] != NULL; i++)
        add_candidate(&list, declared[i]);
    near = text_nearest(consumer, list.names);
    return diag_set(diag, STATUS_USAGE,
                    "no consumer is called '%.200s'%s%s%s; moontide status "
                    "lists them",
                    consumer, near != NULL ? "; did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?" : "");
}

bool operation_is_declared(const struct operation *op)
{
    const char *type = declared_type(op->env, op->name);

    return op->env->declared == NULL ||
           (type != NULL && strcmp(type, op->type) == 0);
}

/* --- locking -------------------------------------------------------------- */

static void note_position(struct operation *op, struct text source,
                          int64_t position)
{
    struct operation_source *last = op->nsources > 0
                                        ? &op->sources[op->nsources - 1]
                                        : NULL;

    if (last != NULL && text_equal(text_of(last->name), source)) {
        if (position < last->lowest)
            last->lowest = position;
        return;
    }
    if ((op->nsources & (op->nsources - 1)) == 0) { /* full: 0, 1, 2, 4 ... */
        size_t room = op->nsources == 0 ? 1 : 2 * op->nsources;
        struct operation_source *bigger = arena_alloc(&op->arena,
                                                      room * sizeof(*bigger));

        if (op->nsources > 0)
            memcpy(bigger, op->sources, op->nsources * sizeof(*bigger));
        op->sources = bigger;
    }
    op->sources[op->nsources++] = (struct operation_source){
        .name = arena_string(&op->arena, source),
        .lowest = position,
    };
}

enum status operation_lock(struct operation *op, const char *consumer_id,
                           struct diag *diag)
{
    const struct db_value params[] = {db_string(consumer_id)};
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(
        op->env->db, catalog_sql(op->env->catalog, SQL_OPERATE_LOCK), params, 1,
        &rows, diag);

    if (status != STATUS_OK)
        return status;
    op->nsources = 0;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more)
        note_position(op, db_get_text(rows, 0),
                      db_is_null(rows, 2) ? 0 : db_get_int64(rows, 2));
    db_rows_close(rows);
    return status;
}

/* --- the transaction ------------------------------------------------------ */

static enum status find_and_lock(struct operation *op, const char *consumer,
                                 struct diag *diag)
{
    enum status status = operation_find(op, consumer, diag);

    if (status != STATUS_OK || op->row.id[0] == '\0')
        return status;
    status = operation_lock(op, op->row.id, diag);
    if (status != STATUS_OK)
        return status;
    /* again, for it may have waited: only now nobody changes it */
    const struct consumer_name name = {op->type, op->name};

    status = registry_read(op->env->db, op->env->catalog, &name, &op->row,
                           diag);
    if (status == STATUS_OK && !op->row.exists)
        status = diag_set(diag, STATUS_CONFLICT,
                          "%s '%s' was unsubscribed at the same moment",
                          op->type, op->name);
    return status;
}

static enum status run_once(struct operation *op, const char *consumer,
                            operation_fn fn, void *arg, struct diag *diag)
{
    struct db *db = op->env->db;
    enum status status = db_begin(db, diag);

    if (status != STATUS_OK)
        return status;
    if (consumer != NULL)
        status = find_and_lock(op, consumer, diag);
    if (status == STATUS_OK)
        status = fn(op, arg, diag);
    if (status == STATUS_OK && op->env->notify)
        status = notify_send(db, op->env->catalog, diag);
    if (status == STATUS_OK) {
        status = db_commit(db, NULL, diag);
        if (status == STATUS_LOST)
            (void)diag_wrap(diag, "it is not known whether this was done, and "
                                  "doing it again is safe");
    }
    if (status != STATUS_OK)
        db_rollback(db);
    return status;
}

enum status operation_run(const struct operate_env *env, const char *consumer,
                          bool left_first, operation_fn fn, void *arg,
                          struct diag *diag)
{
    int64_t end = clock_monotonic() + TRY_FOR_US;
    enum status status;

    do {
        struct operation op = {
            .env = env,
            .arena = ARENA_EMPTY,
            .left_first = left_first,
        };

        if (env->stop != NULL && *env->stop)
            return diag_set(diag, STATUS_STOPPED, "stopped by a signal");
        status = run_once(&op, consumer, fn, arg, diag);
        arena_free(&op.arena);
    } while (status == STATUS_CONFLICT && clock_monotonic() < end);
    return status;
}

enum status operation_look(const struct operate_env *env, operation_fn fn,
                           void *arg, struct diag *diag)
{
    struct operation op = {.env = env, .arena = ARENA_EMPTY};
    enum status status = db_begin_read(env->db, diag);

    if (status == STATUS_OK)
        status = fn(&op, arg, diag);
    db_rollback(env->db);
    arena_free(&op.arena);
    return status;
}

enum status operation_tell_done(int64_t count, const char *done,
                                struct diag *diag)
{
    if (count == 0 && diag->status == STATUS_STOPPED)
        return diag_append(diag, " (nothing was changed)");
    if (count == 0)
        return diag->status;
    return diag_append(diag,
                       " (%" PRId64
                       " %s before that; doing it again goes on with the rest)",
                       count, done);
}
