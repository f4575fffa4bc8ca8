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

enum status letters_retry(struct db *db, const struct catalog *catalog,
                          const struct letters *letters, struct arena *arena,
                          struct diag *diag)
{
    int64_t affected;

    return change_rows(db, catalog_sql(catalog, SQL_LETTERS_RETRY), letters,
                       arena, &affected, diag);
}

static enum status record_skips(struct db *db, const struct catalog *catalog,
                                const struct letter *letter, bool every_key,
                                struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < letter->nrows; i++) {
        const struct skip skip = {
            .partition = letter->rows[i].partition,
            .position = letter->position,
            .key = letter->key,
            .every_key = every_key || letter->unresolved,
        };

        status = skips_record(db, catalog, letter->consumer_id, letter->source,
                              &skip, diag);
    }
    return status;
}

static enum status delete_position(struct db *db, const struct catalog *catalog,
                                   const struct letter *letter,
                                   int64_t *deleted, struct diag *diag)
{
    const struct db_value params[] = {db_string(letter->consumer_id),
                                      db_string(letter->source),
                                      db_integer(letter->position)};
    int64_t affected = 0;
    enum status status = db_execute(
        db, catalog_sql(catalog, SQL_LETTERS_DELETE_POSITION), params, 3,
        &affected, diag);

    *deleted += affected;
    return status;
}

enum status letters_skip(struct db *db, const struct catalog *catalog,
                         const struct letters *letters, bool every_key,
                         struct arena *arena, int64_t *deleted,
                         struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < letters->count; i++)
        status = record_skips(db, catalog, &letters->items[i], every_key, diag);
    if (status == STATUS_OK)
        status = change_rows(db, catalog_sql(catalog, SQL_UNDELIVERED_DELETE),
                             letters, arena, deleted, diag);
    for (size_t i = 0; every_key && status == STATUS_OK && i < letters->count;
         i++)
        status = delete_position(db, catalog, &letters->items[i], deleted,
                                 diag);
    return status;
}
