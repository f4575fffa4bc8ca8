#include "model/upsert_group.h"

#include "base/map.h"
#include "base/memory.h"
#include "schema/names.h"

#include <math.h>
#include <strings.h>

struct upsert_group {
    struct arena arena;
    struct db_table table;
    size_t nkeys;
    struct db_value *rows; /* row-major, ncolumns each */
    bool *dead;            /* rows that an undo removed */
    size_t count, capacity;
    struct map keys; /* key values as bytes -> row */
    struct buffer key;
};

/* --- values ------------------------------------------------------------------
 */

struct db_value upsert_keep_value(struct arena *arena,
                                  const struct db_value *value)
{
    struct db_value kept = *value;

    if (value->type == DB_TEXT || value->type == DB_BYTES ||
        value->type == DB_DECIMAL)
        kept.as.text = arena_copy(arena, value->as.text);
    return kept;
}

static double as_double(const struct db_value *v)
{
    return v->type == DB_INT64 ? (double)v->as.integer : v->as.number;
}

/* into += more. Integers stay exact; NULL counts as nothing. */
static enum status add_value(struct db_value *into, const struct db_value *more,
                             const char *column, struct diag *diag)
{
    bool numbers = (into->type == DB_INT64 || into->type == DB_DOUBLE) &&
                   (more->type == DB_INT64 || more->type == DB_DOUBLE);
    int64_t sum;

    if (more->type == DB_NULL)
        return STATUS_OK;
    if (into->type == DB_NULL) {
        *into = *more;
        return STATUS_OK;
    }
    if (!numbers)
        return diag_set(diag, STATUS_INVALID,
                        "column '%s': moontide.add takes numbers only", column);
    if (into->type == DB_INT64 && more->type == DB_INT64) {
        if (__builtin_add_overflow(into->as.integer, more->as.integer, &sum))
            return diag_set(diag, STATUS_INVALID,
                            "column '%s': the sum of one batch is beyond 64 "
                            "bits",
                            column);
        into->as.integer = sum;
        return STATUS_OK;
    }
    *into = db_number(as_double(into) + as_double(more));
    if (!isfinite(into->as.number))
        return diag_set(diag, STATUS_INVALID,
                        "column '%s': the sum of one batch is not finite",
                        column);
    return STATUS_OK;
}

/* Appends a value so that different keys give different bytes. */
static enum status key_append(struct buffer *out, const struct db_value *v,
                              const char *column, struct diag *diag)
{
    switch (v->type) {
    case DB_INT64:
    case DB_TIMESTAMP:
        buffer_append_char(out, 'i');
        buffer_append(out, &v->as.integer, sizeof(v->as.integer));
        return STATUS_OK;
    case DB_BOOL:
        buffer_append_string(out, v->as.boolean ? "t;" : "f;");
        return STATUS_OK;
    case DB_DOUBLE:
        buffer_printf(out, "d%a;", v->as.number);
        return STATUS_OK;
    case DB_TEXT:
    case DB_BYTES:
    case DB_DECIMAL:
        buffer_append_char(out, 's');
        buffer_append(out, &v->as.text.len, sizeof(v->as.text.len));
        buffer_append_text(out, v->as.text);
        return STATUS_OK;
    case DB_UUID:
        buffer_append(out, v->as.uuid.bytes, sizeof(v->as.uuid.bytes));
        return STATUS_OK;
    case DB_NULL:
    case DB_INT64_ARRAY:
    case DB_TEXT_ARRAY:
        break;
    }
    return diag_set(diag, STATUS_INVALID,
                    "key column '%s' of an upsert may not be nil", column);
}

/* --- the group
 * ------------------------------------------------------------------ */

static enum status check_columns(const struct handler_value *keys, size_t nkeys,
                                 const struct handler_value *values,
                                 size_t nvalues, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (nkeys == 0)
        return diag_set(diag, STATUS_INVALID,
                        "an upsert needs at least one key column");
    for (size_t i = 0; status == STATUS_OK && i < nkeys + nvalues; i++) {
        const struct handler_value *v = i < nkeys ? &keys[i]
                                                  : &values[i - nkeys];

        status = names_identifier("column", v->column, diag);
        for (size_t k = 0; status == STATUS_OK && i >= nkeys && k < nkeys; k++)
            if (strcmp(keys[k].column, v->column) == 0)
                status = diag_set(diag, STATUS_INVALID,
                                  "column '%s' is key and value of one upsert",
                                  v->column);
    }
    return status;
}

enum status upsert_group_new(const char *table,
                             const struct handler_value *keys, size_t nkeys,
                             const struct handler_value *values, size_t nvalues,
                             struct upsert_group **group_out, struct diag *diag)
{
    struct upsert_group *group;
    struct db_column *columns;
    enum status status = names_identifier("table", table, diag);

    if (status == STATUS_OK)
        status = check_columns(keys, nkeys, values, nvalues, diag);
    if (status != STATUS_OK) {
        if (diag != NULL)
            diag->status = STATUS_INVALID;
        return STATUS_INVALID;
    }
    group = mem_alloc(sizeof(*group));
    columns = arena_alloc_zero(&group->arena,
                               (nkeys + nvalues) * sizeof(*columns));
    for (size_t i = 0; i < nkeys; i++)
        columns[i] = (struct db_column){
            .name = arena_string(&group->arena, text_of(keys[i].column)),
            .type = keys[i].value.type,
            .role = DB_KEY,
        };
    for (size_t i = 0; i < nvalues; i++)
        columns[nkeys + i] = (struct db_column){
            .name = arena_string(&group->arena, text_of(values[i].column)),
            .type = values[i].value.type,
            .role = values[i].add ? DB_ADD : DB_SET,
        };
    group->nkeys = nkeys;
    group->table = (struct db_table){
        .name = arena_string(&group->arena, text_of(table)),
        .columns = columns,
        .ncolumns = nkeys + nvalues,
        .origin = DB_SCRIPT,
    };
    *group_out = group;
    return STATUS_OK;
}

void upsert_group_free(struct upsert_group *group)
{
    mem_free(group->rows);
    mem_free(group->dead);
    map_free(&group->keys);
    buffer_free(&group->key);
    arena_free(&group->arena);
    mem_free(group);
}

bool upsert_group_takes(const struct upsert_group *group, const char *table,
                        const struct handler_value *keys, size_t nkeys,
                        const struct handler_value *values, size_t nvalues)
{
    const struct db_column *c = group->table.columns;

    if (nkeys != group->nkeys || nkeys + nvalues != group->table.ncolumns ||
        strcmp(table, group->table.name) != 0)
        return false;
    for (size_t i = 0; i < nkeys; i++)
        if (strcmp(c[i].name, keys[i].column) != 0)
            return false;
    for (size_t i = 0; i < nvalues; i++)
        if (strcmp(c[nkeys + i].name, values[i].column) != 0 ||
            (c[nkeys + i].role == DB_ADD) != values[i].add)
            return false;
    return true;
}

/* Whether the group has a row for these key values; its key columns have the
 * same names. */
static bool has_row(const struct upsert_group *group,
                    const struct handler_value *keys, size_t nkeys)
{
    struct buffer text = BUFFER_EMPTY;
    int64_t row = MAP_ABSENT;
    bool good = true;

    for (size_t i = 0; good && i < nkeys; i++)
        good = key_append(&text, &keys[i].value, keys[i].column, NULL) ==
               STATUS_OK;
    if (good)
        row = map_get(&group->keys, buffer_text(&text));
    buffer_free(&text);
    return row != MAP_ABSENT && !group->dead[row];
}

static bool same_keys(const struct upsert_group *group,
                      const struct handler_value *keys, size_t nkeys)
{
    if (group->nkeys != nkeys)
        return false;
    for (size_t i = 0; i < nkeys; i++)
        if (strcasecmp(group->table.columns[i].name, keys[i].column) != 0)
            return false;
    return true;
}

/* Sums may change places; everything else that meets in a column may not. */
static bool columns_commute(const struct upsert_group *group,
                            const struct handler_value *values, size_t nvalues)
{
    for (size_t i = group->nkeys; i < group->table.ncolumns; i++) {
        const struct db_column *column = &group->table.columns[i];

        for (size_t k = 0; k < nvalues; k++)
            if (strcasecmp(column->name, values[k].column) == 0 &&
                !(column->role == DB_ADD && values[k].add))
                return false;
    }
    return true;
}

bool upsert_group_may_pass(const struct upsert_group *later,
                           const struct upsert_group *earlier,
                           const struct handler_value *keys, size_t nkeys,
                           const struct handler_value *values, size_t nvalues)
{
    if (strcasecmp(later->table.name, earlier->table.name) != 0)
        return true;
    if (!same_keys(later, keys, nkeys))
        return false; /* other columns may name the same row */
    if (!has_row(later, keys, nkeys))
        return true;
    /* which of the two makes the row decides over its columns' defaults */
    return has_row(earlier, keys, nkeys) &&
           columns_commute(later, values, nvalues);
}

/* --- the journal
 * ------------------------------------------------------------------ */

void upsert_journal_clear(struct upsert_journal *journal)
{
    journal->count = journal->nvalues = 0;
}

void upsert_journal_free(struct upsert_journal *journal)
{
    mem_free(journal->changes);
    mem_free(journal->values);
    *journal = (struct upsert_journal){.count = 0};
}

static void journal_note(struct upsert_journal *journal,
                         struct upsert_group *group, size_t row, bool added)
{
    size_t width = group->table.ncolumns;

    if (journal == NULL)
        return;
    if (journal->count == journal->capacity) {
        journal->capacity = journal->capacity == 0 ? 16 : 2 * journal->count;
        journal->changes = mem_grow(journal->changes, journal->capacity,
                                    sizeof(*journal->changes));
    }
    journal->changes[journal->count++] = (struct upsert_change){
        .group = group,
        .row = row,
        .added = added,
        .saved = journal->nvalues,
    };
    if (added)
        return;
    if (journal->nvalues + width > journal->values_capacity) {
        journal->values_capacity = 2 * (journal->nvalues + width);
        journal->values = mem_grow(journal->values, journal->values_capacity,
                                   sizeof(*journal->values));
    }
    memcpy(journal->values + journal->nvalues, group->rows + row * width,
           width * sizeof(*group->rows));
    journal->nvalues += width;
}

void upsert_journal_undo(struct upsert_journal *journal)
{
    for (size_t i = journal->count; i-- > 0;) {
        const struct upsert_change *change = &journal->changes[i];
        struct upsert_group *group = change->group;
        size_t width = group->table.ncolumns;

        if (change->added)
            group->dead[change->row] = true;
        else
            memcpy(group->rows + change->row * width,
                   journal->values + change->saved,
                   width * sizeof(*group->rows));
    }
    upsert_journal_clear(journal);
}

/* --- adding and sending
 * -------------------------------------------------------------- */

static size_t new_row(struct upsert_group *group)
{
    if (group->count == group->capacity) {
        group->capacity = group->capacity == 0 ? 16 : 2 * group->capacity;
        group->rows = mem_grow(group->rows,
                               group->capacity * group->table.ncolumns,
                               sizeof(*group->rows));
        group->dead = mem_grow(group->dead, group->capacity,
                               sizeof(*group->dead));
    }
    return group->count++;
}

static void fill_row(struct upsert_group *group, size_t row,
                     const struct handler_value *keys,
                     const struct handler_value *values)
{
    struct db_value *v = group->rows + row * group->table.ncolumns;

    group->dead[row] = false;
    for (size_t i = 0; i < group->table.ncolumns; i++)
        v[i] = upsert_keep_value(
            &group->arena, i < group->nkeys ? &keys[i].value
                                            : &values[i - group->nkeys].value);
}

/* All sums first, so that a refused one leaves the row as it was. */
static enum status merge_row(struct upsert_group *group, size_t row,
                             const struct handler_value *values,
                             struct upsert_journal *journal, struct diag *diag)
{
    const struct db_column *columns = group->table.columns;
    size_t width = group->table.ncolumns;
    struct db_value *into = group->rows + row * width;

    for (size_t i = group->nkeys; i < width; i++) {
        struct db_value sum = into[i];
        enum status status;

        if (columns[i].role != DB_ADD)
            continue;
        status = add_value(&sum, &values[i - group->nkeys].value,
                           columns[i].name, diag);
        if (status != STATUS_OK)
            return status;
    }
    journal_note(journal, group, row, false);
    for (size_t i = group->nkeys; i < width; i++) {
        const struct db_value *value = &values[i - group->nkeys].value;

        if (columns[i].role != DB_ADD)
            into[i] = upsert_keep_value(&group->arena, value);
        else if (add_value(&into[i], value, columns[i].name, diag) != STATUS_OK)
            return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status upsert_group_add(struct upsert_group *group,
                             const struct handler_value *keys,
                             const struct handler_value *values,
                             struct upsert_journal *journal, struct diag *diag)
{
    const struct db_column *columns = group->table.columns;
    enum status status = STATUS_OK;
    bool added = false;
    int64_t row;

    buffer_clear(&group->key);
    for (size_t i = 0; status == STATUS_OK && i < group->nkeys; i++)
        status = key_append(&group->key, &keys[i].value, columns[i].name, diag);
    if (status != STATUS_OK)
        return status;
    row = map_get(&group->keys, buffer_text(&group->key));
    if (row == MAP_ABSENT) {
        row = (int64_t)new_row(group);
        map_put(&group->keys,
                arena_copy(&group->arena, buffer_text(&group->key)), row,
                &added);
    }
    if (added || group->dead[row]) {
        journal_note(journal, group, (size_t)row, true);
        fill_row(group, (size_t)row, keys, values);
        return STATUS_OK;
    }
    return merge_row(group, (size_t)row, values, journal, diag);
}

enum status upsert_group_queue(struct upsert_group *group, struct db *db,
                               int64_t tag, struct diag *diag)
{
    size_t width = group->table.ncolumns;
    size_t live = 0;

    for (size_t i = 0; i < group->count; i++) {
        if (group->dead[i])
            continue;
        if (live != i)
            memcpy(group->rows + live * width, group->rows + i * width,
                   width * sizeof(*group->rows));
        live++;
    }
    group->count = live;
    if (live == 0)
        return STATUS_OK;
    return db_queue_bulk(db, DB_UPSERT, &group->table, group->rows, live, tag,
                         diag);
}
