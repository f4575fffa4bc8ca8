#include "consumer/letter_change.h"

#include "consumer/skipped.h"

/* Runs a statement for all rows of the letters. */
static enum status change_rows(struct db *db, const struct db_sql *sql,
                               const struct letters *letters,
                               struct arena *arena, int64_t *affected,
                               struct diag *diag)
{
    size_t count = 0, done = 0;
    struct text *ids;
    struct db_value param;

    for (size_t i = 0; i < letters->count; i++)
        count += letters->items[i].nrows;
    *affected = 0;
    if (count == 0)
        return STATUS_OK;
    ids = arena_alloc(arena, count * sizeof(*ids));
    for (size_t i = 0; i < letters->count; i++)
        done = letter_ids(&letters->items[i], ids, done);
    param = db_texts(ids, count);
    return db_execute(db, sql, &param, 1, affected, diag);
}

enum status letters_retry(const struct operate_env *env,
                          const struct letters *letters, struct arena *arena,
                          struct diag *diag)
{
    int64_t affected;

    return change_rows(env->db, catalog_sql(env->catalog, SQL_LETTERS_RETRY),
                       letters, arena, &affected, diag);
}

/* A letter without keys has a row in each partition, and skips in each. */
static enum status record_skips(const struct operate_env *env,
                                const struct letters *letters, bool every_key,
                                struct arena *arena, struct diag *diag)
{
    const struct letter *first = letters->items;
    size_t count = 0, done = 0;
    struct skip *skips;

    for (size_t i = 0; i < letters->count; i++)
        count += letters->items[i].nrows;
    skips = arena_alloc(arena, count * sizeof(*skips));
    for (size_t i = 0; i < letters->count; i++) {
        const struct letter *letter = &letters->items[i];

        for (size_t row = 0; row < letter->nrows; row++)
            skips[done++] = (struct skip){
                .partition = letter->rows[row].partition,
                .position = letter->position,
                .key = letter->key,
                .every_key = every_key || letter->unresolved,
            };
    }
    return skips_record_all(env->db, env->names, first->consumer_id,
                            first->source, skips, count, arena, diag);
}

static enum status delete_positions(const struct operate_env *env,
                                    const struct letters *letters,
                                    struct arena *arena, int64_t *deleted,
                                    struct diag *diag)
{
    int64_t *positions = arena_alloc(arena,
                                     letters->count * sizeof(*positions));
    const struct db_value params[] = {
        db_string(letters->items[0].consumer_id),
        db_string(letters->items[0].source),
        db_integers(positions, letters->count),
    };
    int64_t affected = 0;
    enum status status;

    for (size_t i = 0; i < letters->count; i++)
        positions[i] = letters->items[i].position;
    status = db_execute(env->db,
                        catalog_sql(env->catalog, SQL_LETTERS_DELETE_POSITIONS),
                        params, 3, &affected, diag);
    *deleted += affected;
    return status;
}

enum status letters_skip(const struct operate_env *env,
                         const struct letters *letters, bool every_key,
                         struct arena *arena, int64_t *deleted,
                         struct diag *diag)
{
    enum status status;

    *deleted = 0;
    if (letters->count == 0)
        return STATUS_OK;
    status = record_skips(env, letters, every_key, arena, diag);
    if (status == STATUS_OK)
        status = change_rows(env->db,
                             catalog_sql(env->catalog, SQL_UNDELIVERED_DELETE),
                             letters, arena, deleted, diag);
    if (status == STATUS_OK && every_key)
        status = delete_positions(env, letters, arena, deleted, diag);
    return status;
}
