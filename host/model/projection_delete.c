#include "model/projection_delete.h"

#include "topic/read_model_switch.h"

struct finding {
    const struct projection_delete *delete;
    struct read_model_row *rows;
};

static enum status row_found(void *arg, size_t index, struct db_rows *row,
                             struct diag *diag)
{
    const struct finding *finding = arg;
    const struct projection_delete *d = finding->delete;
    struct read_model_row *found = &finding->rows[index];

    (void)diag;
    found->found = true;
    found->read_id = db_get_uuid(row, 0);
    if (d->topic->on)
        (void)projection_topic_add(
            d->topic, PROJECTION_TOPIC_NONE, NULL,
            uuid_v7(d->ids, clock_now(d->clock)), found->key,
            arena_copy(d->arena, db_get_text(row, 1)), true);
    return STATUS_OK;
}

/* Whoever deletes past a batch has the checkpoints locked, as it has. */
static enum status ask_topic(const struct projection_delete *d, struct db *db,
                             struct diag *diag)
{
    struct read_model_switch state;
    enum status status = read_model_switch_read(
        db, d->catalog, d->declaration->name, d->arena, &state, diag);

    d->topic->on = status == STATUS_OK && state.on;
    projection_topic_begin(d->topic);
    return status;
}

enum status projection_delete_keys(const struct projection_delete *d,
                                   struct db *db, const struct text *keys,
                                   size_t count, struct diag *diag)
{
    struct read_model_row *rows = arena_alloc_zero(d->arena,
                                                   count * sizeof(*rows) + 1);
    struct finding finding = {d, rows};
    size_t found = 0;
    enum status status = ask_topic(d, db, diag);

    for (size_t i = 0; i < count; i++)
        rows[i].key = keys[i];
    if (status == STATUS_OK)
        status = db_lookup(db, &d->table->lookup, keys, count, row_found,
                           &finding, diag);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].found)
            rows[found++] = rows[i];
    }
    if (status == STATUS_OK)
        status = read_model_table_write(d->table, db, READ_MODEL_DELETE, rows,
                                        found, d->arena, diag);
    if (status == STATUS_OK)
        status = read_model_table_forget(d->table, db, keys, count, diag);
    if (status == STATUS_OK && d->topic->on)
        status = projection_topic_send(d->topic, db, clock_now(d->clock),
                                       d->arena, diag);
    return status;
}

enum status projection_delete_stale(const struct projection_delete *d,
                                    struct db *db,
                                    const struct applier_stale *stale,
                                    struct buffer *after, bool *more,
                                    struct diag *diag)
{
    struct text *keys = arena_alloc(d->arena, stale->limit * sizeof(*keys));
    size_t count;
    enum status status = read_model_table_stale(
        d->table, db, stale, buffer_text(after), keys, &count, d->arena, diag);

    *more = status == STATUS_OK && count > 0;
    if (!*more)
        return status;
    status = projection_delete_keys(d, db, keys, count, diag);
    buffer_clear(after);
    buffer_append_text(after, keys[count - 1]);
    return status;
}
