#include "model/saga_delete.h"

#include "consumer/operate_deadlines.h"
#include "model/saga_deadline.h"
#include "model/saga_step_store.h"

#include <string.h>

enum { COLUMNS = 2 };

static const struct db_column REMOVE[COLUMNS] = {
    {"id", DB_UUID, DB_KEY},
    {"version", DB_INT64, DB_GUARD},
};

/* --- rows -----------------------------------------------------------------
 */

/* One statement for each run of rows of one type. */
static enum status delete_deadlines(struct db *db,
                                    const struct catalog *catalog,
                                    const struct saga_deleted *rows,
                                    size_t count, struct arena *arena,
                                    struct diag *diag)
{
    struct text *ids = arena_alloc(arena, count * sizeof(*ids));
    enum status status = STATUS_OK;

    for (size_t at = 0; status == STATUS_OK && at < count;) {
        const char *type = rows[at].saga_type;
        size_t first = at;

        for (; at < count && strcmp(rows[at].saga_type, type) == 0; at++)
            ids[at] = rows[at].saga_id;
        status = saga_deadlines_delete(db, catalog, type, ids + first,
                                       at - first, diag);
    }
    return status;
}

static enum status delete_steps(struct db *db, const struct catalog *catalog,
                                const struct saga_deleted *rows, size_t count,
                                struct arena *arena, struct diag *diag)
{
    struct text *ids = arena_alloc(arena, count * sizeof(*ids));
    struct db_value instances;

    for (size_t i = 0; i < count; i++) {
        char id[UUID_TEXT_LEN + 1];

        uuid_format(&rows[i].id, id);
        ids[i] = arena_copy(arena, text_of(id));
    }
    instances = db_texts(ids, count);
    return db_execute(db, catalog_sql(catalog, SQL_SAGA_STEPS_DELETE),
                      &instances, 1, NULL, diag);
}

static enum status delete_instances(struct db *db, const struct names *names,
                                    const struct saga_deleted *rows,
                                    size_t count, struct arena *arena,
                                    struct diag *diag)
{
    const struct db_table table = {
        .name = names->table[TABLE_SAGA_INSTANCES],
        .columns = REMOVE,
        .ncolumns = COLUMNS,
        .origin = DB_HOST,
    };
    struct db_value *values = arena_alloc(arena,
                                          count * COLUMNS * sizeof(*values));
    enum status status;

    for (size_t i = 0; i < count; i++) {
        values[COLUMNS * i] = db_uuid(rows[i].id);
        values[COLUMNS * i + 1] = db_integer(rows[i].version);
    }
    status = db_queue_bulk(db, DB_DELETE, &table, values, count, 0, diag);
    return status == STATUS_OK ? db_flush(db, NULL, diag) : status;
}

enum status saga_delete_rows(struct db *db, const struct catalog *catalog,
                             const struct names *names,
                             const struct saga_deleted *rows, size_t count,
                             struct arena *arena, struct diag *diag)
{
    enum status status = delete_deadlines(db, catalog, rows, count, arena,
                                          diag);

    if (status == STATUS_OK)
        status = delete_steps(db, catalog, rows, count, arena, diag);
    if (status == STATUS_OK)
        status = delete_instances(db, names, rows, count, arena, diag);
    return status;
}

/* --- an operator's word ----------------------------------------------------
 */

struct found {
    struct saga_deleted row;
    bool stored, completed;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    struct found *found = arg;

    (void)diag;
    found->stored = true;
    found->row.id = db_get_uuid(row, 0);
    found->row.version = db_get_int64(row, 1);
    found->completed = !db_is_null(row, 2);
    return STATUS_OK;
}

static enum status refuse(const struct saga_step_subject *subject,
                          const struct found *found,
                          const struct saga_step_row *awaited,
                          struct diag *diag)
{
    const char *word = found->completed ? "completed" : "under way";

    if (awaited == NULL)
        return diag_set(diag, STATUS_REFUSED,
                        "saga '" TEXT_FORMAT "' of type '" TEXT_FORMAT
                        "' is %s, and what it has done stays as it is: nothing "
                        "was deleted; with --force it is",
                        TEXT_ARGS(subject->saga_id),
                        TEXT_ARGS(subject->saga_type), word);
    return diag_set(diag, STATUS_REFUSED,
                    "saga '" TEXT_FORMAT "' of type '" TEXT_FORMAT
                    "' is %s, its step '" TEXT_FORMAT "' is %s, and nothing "
                    "would undo what was done: nothing was deleted; with "
                    "--force it is",
                    TEXT_ARGS(subject->saga_id), TEXT_ARGS(subject->saga_type),
                    word, TEXT_ARGS(awaited->name),
                    saga_step_state_word(awaited->state));
}

/* Locks the row first, as whoever writes a saga does. */
static enum status find(const struct operate_env *env,
                        const struct saga_step_subject *subject, bool force,
                        struct arena *arena, struct found *found,
                        struct saga_deletion *deletion, struct diag *diag)
{
    const struct db_value params[] = {db_text_value(subject->saga_type),
                                      db_text_value(subject->saga_id)};
    struct saga_steps steps = {.arena = arena};
    const struct saga_step_row *awaited;
    enum status status = db_rows_each(
        env->db, catalog_sql(env->catalog, SQL_SAGA_INSTANCE_LOCK), params, 2,
        take_row, found, diag);

    if (status == STATUS_OK && !found->stored)
        status = diag_set(
            diag, STATUS_FAILED,
            "there is no saga '" TEXT_FORMAT "' of type '" TEXT_FORMAT
            "'; moontide sagas lists them",
            TEXT_ARGS(subject->saga_id), TEXT_ARGS(subject->saga_type));
    if (status == STATUS_OK)
        status = saga_step_store_read(env->db, env->catalog, subject->saga_type,
                                      subject->saga_id, &steps, diag);
    if (status != STATUS_OK)
        return status;
    awaited = saga_steps_awaited(&steps);
    if (!force && (!found->completed || awaited != NULL))
        return refuse(subject, found, awaited, diag);
    deletion->instance = found->row.id;
    deletion->completed = found->completed;
    deletion->steps = (int64_t)steps.nrows;
    return STATUS_OK;
}

static enum status delete_one(const struct operate_env *env,
                              const struct names *names,
                              const struct saga_step_subject *subject,
                              bool force, struct arena *arena,
                              struct saga_deletion *deletion, struct diag *diag)
{
    struct found found = {
        .row = {.saga_type = arena_string(arena, subject->saga_type),
                .saga_id = subject->saga_id},
    };
    const struct deadline_filter filter = {
        .type = found.row.saga_type,
        .saga_id = arena_string(arena, subject->saga_id),
    };
    enum status status = find(env, subject, force, arena, &found, deletion,
                              diag);

    if (status == STATUS_OK)
        status = operate_deadlines_count(env, &filter, &deletion->deadlines,
                                         diag);
    if (status == STATUS_OK)
        status = saga_delete_rows(env->db, env->catalog, names, &found.row, 1,
                                  arena, diag);
    return status == STATUS_OK ? db_commit(env->db, NULL, diag) : status;
}

/* When all is done, for it may take a while; a foreign row that cannot be read
 * makes nothing undone. */
static int64_t count_staged(const struct operate_env *env,
                            const struct saga_step_subject *subject)
{
    const struct db_value params[] = {db_text_value(subject->saga_type),
                                      db_text_value(subject->saga_id)};
    struct diag ignored;
    int64_t count = 0;
    bool found;
    enum status status = db_query_int64(
        env->db, catalog_sql(env->catalog, SQL_SAGA_STAGED_COUNT), params, 2,
        &count, &found, &ignored);

    return status == STATUS_OK ? count : -1;
}

enum status saga_delete(const struct operate_env *env,
                        const struct names *names,
                        const struct saga_step_subject *subject, bool force,
                        struct arena *arena, struct saga_deletion *deletion,
                        struct diag *diag)
{
    enum status status = db_begin(env->db, diag);

    *deletion = (struct saga_deletion){.completed = false};
    if (status != STATUS_OK)
        return status;
    status = delete_one(env, names, subject, force, arena, deletion, diag);
    if (status != STATUS_OK) {
        db_rollback(env->db);
        return status;
    }
    deletion->outbox = count_staged(env, subject);
    return STATUS_OK;
}
