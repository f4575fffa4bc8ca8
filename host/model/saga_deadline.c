#include "model/saga_deadline.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "consumer/deadline.h"

#include <string.h>

enum change_kind {
    CHANGE_SET,
    CHANGE_CANCEL,
    CHANGE_CLEAR,
    CHANGE_FIRED,
};

/* One change, in the order in which they were asked for. */
struct change {
    enum change_kind kind;
    struct uuid id; /* FIRED: the row's */
    struct saga_deadline_of of;
    struct saga_deadline_set set; /* CANCEL: the name */
    int64_t due_at;
};

struct saga_deadlines {
    struct saga_deadlines_options options;
    struct arena arena; /* of the batch */
    struct change *changes;
    size_t count, capacity;
    size_t call; /* the first change of the running call */
    int64_t earliest;
    /* while they are folded: saga and name that a later change is about */
    struct map seen;
    struct map cleared; /* saga ids */
    struct buffer key;
};

struct saga_deadlines *
saga_deadlines_new(const struct saga_deadlines_options *options)
{
    struct saga_deadlines *d = mem_alloc(sizeof(*d));

    d->options = *options;
    d->earliest = INT64_MAX;
    return d;
}

void saga_deadlines_free(struct saga_deadlines *d)
{
    if (d == NULL)
        return;
    arena_free(&d->arena);
    mem_free(d->changes);
    map_free(&d->seen);
    map_free(&d->cleared);
    buffer_free(&d->key);
    mem_free(d);
}

void saga_deadlines_batch_begin(struct saga_deadlines *d)
{
    arena_reset(&d->arena);
    d->count = d->call = 0;
}

void saga_deadlines_call_begin(struct saga_deadlines *d)
{
    d->call = d->count;
}

void saga_deadlines_call_undo(struct saga_deadlines *d)
{
    d->count = d->call;
}

int64_t saga_deadlines_earliest(struct saga_deadlines *d)
{
    int64_t earliest = d->earliest;

    d->earliest = INT64_MAX;
    return earliest;
}

/* --- what is asked for ---------------------------------------------------- */

static struct change *add(struct saga_deadlines *d, enum change_kind kind,
                          const struct saga_deadline_of *of)
{
    struct change *change;

    if (d->count == d->capacity) {
        d->capacity = d->capacity > 0 ? 2 * d->capacity : 64;
        d->changes = mem_grow(d->changes, d->capacity, sizeof(*d->changes));
    }
    change = &d->changes[d->count++];
    *change = (struct change){.kind = kind};
    if (of != NULL) {
        change->of = *of;
        change->of.saga_id = arena_copy(&d->arena, of->saga_id);
    }
    return change;
}

static enum status check_name(struct text name, struct diag *diag)
{
    size_t chars = text_utf8_length(name);

    if (chars > 0 && chars <= MESSAGE_KEY_MAX)
        return STATUS_OK;
    return diag_set(diag, STATUS_INVALID,
                    "the name of a deadline has 1 to %d characters, not %zu",
                    MESSAGE_KEY_MAX, chars);
}

/* Durations may be of any length, so the sum is judged before it is made. */
static enum status find_due(struct saga_deadlines *d,
                            const struct saga_deadline_set *set, int64_t *due,
                            struct diag *diag)
{
    int64_t now = 0, base;
    enum status status = STATUS_OK;

    if (set->relative || set->least_us > 0)
        status = deadline_clock(d->options.db, d->options.clock, &now, diag);
    if (status != STATUS_OK)
        return status;
    base = set->relative ? now : 0;
    if (set->at_us > CLOCK_MAX - (base > 0 ? base : 0) ||
        set->at_us < CLOCK_MIN - (base < 0 ? base : 0) ||
        base + set->at_us < CLOCK_MIN || base + set->at_us > CLOCK_MAX)
        return diag_set(diag, STATUS_INVALID,
                        "deadline '" TEXT_FORMAT
                        "' is due outside of the years 0 to 9999",
                        TEXT_ARGS(set->name));
    *due = base + set->at_us;
    if (set->least_us > 0 && *due < now + set->least_us)
        *due = now + set->least_us;
    return STATUS_OK;
}

enum status saga_deadlines_set(struct saga_deadlines *d,
                               const struct saga_deadline_of *of,
                               const struct saga_deadline_set *set,
                               int64_t *due_at, struct diag *diag)
{
    struct change *change;
    int64_t due = 0;
    enum status status = check_name(set->name, diag);

    if (status == STATUS_OK &&
        set->payload.len > (size_t)d->options.payload_limit)
        status = diag_set(diag, STATUS_INVALID,
                          "the payload of deadline '" TEXT_FORMAT
                          "' has %zu bytes, and limits.payload is %lld",
                          TEXT_ARGS(set->name), set->payload.len,
                          (long long)d->options.payload_limit);
    if (status == STATUS_OK)
        status = find_due(d, set, &due, diag);
    if (status != STATUS_OK)
        return status;
    change = add(d, CHANGE_SET, of);
    change->due_at = due;
    change->set.name = arena_copy(&d->arena, set->name);
    change->set.payload = arena_copy(&d->arena, set->payload);
    change->set.metadata = arena_copy(&d->arena, set->metadata);
    if (due_at != NULL)
        *due_at = due;
    return STATUS_OK;
}

void saga_deadlines_cancel(struct saga_deadlines *d,
                           const struct saga_deadline_of *of, struct text name)
{
    struct change *change = add(d, CHANGE_CANCEL, of);

    change->set.name = arena_copy(&d->arena, name);
}

void saga_deadlines_clear(struct saga_deadlines *d,
                          const struct saga_deadline_of *of)
{
    (void)add(d, CHANGE_CLEAR, of);
}

bool saga_deadlines_changed(const struct saga_deadlines *d, struct text saga_id,
                            struct text name)
{
    for (size_t i = d->count; i-- > 0;) {
        const struct change *c = &d->changes[i];

        if ((c->kind == CHANGE_SET || c->kind == CHANGE_CANCEL) &&
            text_equal(c->set.name, name) && text_equal(c->of.saga_id, saga_id))
            return true;
    }
    return false;
}

void saga_deadlines_fired(struct saga_deadlines *d, const struct uuid *id)
{
    add(d, CHANGE_FIRED, NULL)->id = *id;
}

/* --- the batch ------------------------------------------------------------ */

/* What is left of the changes when the last word about each row counts. */
struct folded {
    struct text *fired; /* ids */
    struct text *cleared;
    struct text *cancelled_of, *cancelled;
    const struct change **set;
    size_t nfired, ncleared, ncancelled, nset;
};

/* Neither a saga's id nor a name has a NUL, which no text column keeps. */
static bool is_last_word(struct saga_deadlines *d, const struct change *change)
{
    bool added;

    if (map_get(&d->cleared, change->of.saga_id) != MAP_ABSENT)
        return false;
    buffer_clear(&d->key);
    buffer_append_text(&d->key, change->of.saga_id);
    buffer_append_char(&d->key, '\0');
    buffer_append_text(&d->key, change->set.name);
    if (map_get(&d->seen, buffer_text(&d->key)) != MAP_ABSENT)
        return false;
    (void)map_put(&d->seen, arena_copy(&d->arena, buffer_text(&d->key)), 0,
                  &added);
    return true;
}

static void fold_one(struct saga_deadlines *d, const struct change *change,
                     struct folded *out)
{
    char id[UUID_TEXT_LEN + 1];
    bool added;

    switch (change->kind) {
    case CHANGE_FIRED:
        uuid_format(&change->id, id);
        out->fired[out->nfired++] = arena_copy(&d->arena, text_of(id));
        break;
    case CHANGE_CLEAR:
        (void)map_put(&d->cleared, change->of.saga_id, 0, &added);
        if (added)
            out->cleared[out->ncleared++] = change->of.saga_id;
        break;
    case CHANGE_CANCEL:
        if (!is_last_word(d, change))
            break;
        out->cancelled_of[out->ncancelled] = change->of.saga_id;
        out->cancelled[out->ncancelled++] = change->set.name;
        break;
    case CHANGE_SET:
        if (is_last_word(d, change))
            out->set[out->nset++] = change;
        break;
    }
}

static void fold(struct saga_deadlines *d, struct folded *out)
{
    size_t texts = d->count * sizeof(struct text);

    *out = (struct folded){
        .fired = arena_alloc(&d->arena, texts),
        .cleared = arena_alloc(&d->arena, texts),
        .cancelled_of = arena_alloc(&d->arena, texts),
        .cancelled = arena_alloc(&d->arena, texts),
        .set = arena_alloc(&d->arena, d->count * sizeof(struct change *)),
    };
    map_clear(&d->seen);
    map_clear(&d->cleared);
    for (size_t i = d->count; i-- > 0;)
        fold_one(d, &d->changes[i], out);
}

enum { COLUMN_COUNT = 13 };

static const struct db_column columns[COLUMN_COUNT] = {
    {"saga_type", DB_TEXT, DB_KEY},
    {"saga_id", DB_TEXT, DB_KEY},
    {"name", DB_TEXT, DB_KEY},
    {"id", DB_UUID, DB_SET},
    {"instance_id", DB_UUID, DB_SET},
    {"due_at", DB_TIMESTAMP, DB_SET},
    {"next_retry_at", DB_TIMESTAMP, DB_SET},
    {"payload_json", DB_TEXT, DB_SET},
    {"metadata_json", DB_TEXT, DB_SET},
    {"partition_no", DB_INT64, DB_SET},
    {"status", DB_TEXT, DB_SET},
    {"attempts", DB_INT64, DB_SET},
    {"failure_reason", DB_TEXT, DB_SET},
};

static enum status queue_set(struct saga_deadlines *d, struct db *db,
                             const struct folded *folded, struct diag *diag)
{
    const struct saga_deadlines_options *options = &d->options;
    struct db_table *table = arena_alloc(&d->arena, sizeof(*table));
    struct db_value *values = arena_alloc(
        &d->arena, folded->nset * COLUMN_COUNT * sizeof(*values));
    int64_t now_us = clock_now(options->clock);

    *table = (struct db_table){
        .name = options->names->table[TABLE_SAGA_DEADLINES],
        .columns = columns,
        .ncolumns = COLUMN_COUNT,
        .origin = DB_HOST,
    };
    /* they were folded from the end, and ids rise in the order of setting */
    for (size_t i = folded->nset; i-- > 0;) {
        const struct change *c = folded->set[i];
        struct db_value *v = values + (folded->nset - 1 - i) * COLUMN_COUNT;

        v[0] = db_string(options->saga_type);
        v[1] = db_text_value(c->of.saga_id);
        v[2] = db_text_value(c->set.name);
        v[3] = db_uuid(uuid_v7(options->ids, now_us));
        v[4] = db_uuid(c->of.instance);
        v[5] = db_timestamp(c->due_at);
        v[6] = db_timestamp(c->due_at);
        v[7] = db_text_value(c->set.payload);
        v[8] = db_text_value(c->set.metadata);
        v[9] = db_integer(c->of.partition);
        v[10] = db_string(deadline_status_word(DEADLINE_PENDING));
        v[11] = db_integer(0);
        v[12] = db_null();
        if (c->due_at < d->earliest)
            d->earliest = c->due_at;
    }
    return db_queue_bulk(db, DB_UPSERT, table, values, folded->nset, -1, diag);
}

static enum status queue_fired(const struct saga_deadlines *d, struct db *db,
                               const struct folded *folded, struct diag *diag)
{
    const struct db_value params[] = {db_texts(folded->fired, folded->nfired)};

    return db_queue(db, catalog_sql(d->options.catalog, SQL_DEADLINE_FIRED),
                    params, 1, (int64_t)folded->nfired, -1, diag);
}

static enum status queue_cancelled(const struct saga_deadlines *d,
                                   struct db *db, const struct folded *folded,
                                   struct diag *diag)
{
    const struct db_value params[] = {
        db_string(d->options.saga_type),
        db_texts(folded->cancelled_of, folded->ncancelled),
        db_texts(folded->cancelled, folded->ncancelled)};

    return db_queue(db, catalog_sql(d->options.catalog, SQL_DEADLINE_CANCEL),
                    params, 3, DB_ANY_ROWS, -1, diag);
}

enum status saga_deadlines_delete(struct db *db, const struct catalog *catalog,
                                  const char *saga_type,
                                  const struct text *saga_ids, size_t count,
                                  struct diag *diag)
{
    const struct db_value params[] = {db_string(saga_type),
                                      db_texts(saga_ids, count)};

    if (count == 0)
        return STATUS_OK;
    return db_queue(db, catalog_sql(catalog, SQL_DEADLINE_CLEAR), params, 2,
                    DB_ANY_ROWS, -1, diag);
}

/* A row that is fired goes by its id, so it goes before one of its name comes.
 */
enum status saga_deadlines_send(struct saga_deadlines *d, struct db *db,
                                struct diag *diag)
{
    struct folded folded;
    enum status status = STATUS_OK;

    if (d->count == 0)
        return STATUS_OK;
    fold(d, &folded);
    if (folded.nfired > 0)
        status = queue_fired(d, db, &folded, diag);
    if (status == STATUS_OK)
        status = saga_deadlines_delete(db, d->options.catalog,
                                       d->options.saga_type, folded.cleared,
                                       folded.ncleared, diag);
    if (status == STATUS_OK && folded.ncancelled > 0)
        status = queue_cancelled(d, db, &folded, diag);
    if (status == STATUS_OK && folded.nset > 0)
        status = queue_set(d, db, &folded, diag);
    return status;
}
