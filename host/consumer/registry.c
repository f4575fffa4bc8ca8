#include "consumer/registry.h"

#include <assert.h>

static const char *const state_words[] = {
    [CONSUMER_RUNNING] = "RUNNING",
    [CONSUMER_PAUSED] = "PAUSED",
    [CONSUMER_HALTED] = "HALTED",
    [CONSUMER_REBUILDING] = "REBUILDING",
};

static const char *const reason_words[] = {
    [HALT_NONE] = "",
    [HALT_MISSING_HISTORY] = "MISSING_HISTORY",
    [HALT_APPLY_ERROR] = "APPLY_ERROR",
    [HALT_DECLARATION_CHANGED] = "DECLARATION_CHANGED",
};

const char *consumer_state_word(enum consumer_state state)
{
    return state_words[state];
}

const char *halt_reason_word(enum halt_reason reason)
{
    return reason_words[reason];
}

/* The place of a stored word in a list of words, -1 when it is none. */
static int word_index(struct text word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (text_equal(word, text_of(words[i])))
            return i;
    return -1;
}

enum status consumer_state_parse(struct text state, struct text reason,
                                 enum consumer_state *state_out,
                                 enum halt_reason *reason_out,
                                 struct diag *diag)
{
    int s = state.data == NULL ? CONSUMER_RUNNING
                               : word_index(state, state_words, 4);
    int r = reason.data == NULL ? HALT_NONE
                                : word_index(reason, reason_words, 4);

    if (s < 0 || r < 0)
        return diag_set(diag, STATUS_PERMANENT,
                        "its row holds state '" TEXT_FORMAT
                        "' and halt reason '" TEXT_FORMAT
                        "', which this version does not know",
                        TEXT_ARGS(state), TEXT_ARGS(reason));
    *state_out = (enum consumer_state)s;
    *reason_out = (enum halt_reason)r;
    return STATUS_OK;
}

/* The row under the cursor: id, state, halt_reason, epoch, state_since. */
static enum status row_take(struct db_rows *rows, struct consumer_row *row,
                            struct diag *diag)
{
    struct text id = db_get_text(rows, 0);

    if (id.len != UUID_TEXT_LEN)
        return diag_set(diag, STATUS_PERMANENT,
                        "a consumer's id '" TEXT_FORMAT "' is no UUID",
                        TEXT_ARGS(id));
    row->exists = true;
    memcpy(row->id, id.data, UUID_TEXT_LEN);
    row->id[UUID_TEXT_LEN] = '\0';
    row->epoch = db_is_null(rows, 3) ? 0 : db_get_int64(rows, 3);
    row->state_since = db_get_timestamp(rows, 4);
    return consumer_state_parse(
        db_is_null(rows, 1) ? TEXT_NONE : db_get_text(rows, 1),
        db_is_null(rows, 2) ? TEXT_NONE : db_get_text(rows, 2), &row->state,
        &row->halt_reason, diag);
}

/* ... and, where it is read, the fingerprint. */
static enum status fingerprint_take(struct db_rows *rows,
                                    struct consumer_row *row, struct diag *diag)
{
    struct text stored;

    row->has_fingerprint = !db_is_null(rows, 5);
    if (!row->has_fingerprint)
        return STATUS_OK;
    stored = db_get_text(rows, 5);
    if (stored.len >= sizeof(row->fingerprint))
        return diag_set(diag, STATUS_PERMANENT,
                        "the declaration_fingerprint of consumer %s has %zu "
                        "bytes, which is no fingerprint",
                        row->id, stored.len);
    memcpy(row->fingerprint, stored.data, stored.len);
    row->fingerprint[stored.len] = '\0';
    return STATUS_OK;
}

enum status registry_read(struct db *db, const struct catalog *catalog,
                          const struct consumer_name *name,
                          struct consumer_row *row, struct diag *diag)
{
    const struct db_value params[] = {db_string(name->type),
                                      db_string(name->name)};
    struct db_rows *rows;
    bool more = false;
    enum status status;

    *row = (struct consumer_row){.exists = false};
    status = db_query(db, catalog_sql(catalog, SQL_CONSUMER_READ), params, 2,
                      &rows, diag);
    if (status != STATUS_OK)
        return status;
    status = db_next(rows, &more, diag);
    if (status == STATUS_OK && more) {
        status = row_take(rows, row, diag);
        if (status == STATUS_OK)
            status = fingerprint_take(rows, row, diag);
        if (status == STATUS_OK)
            status = db_next(rows, &more, diag); /* late errors of the row */
        if (status == STATUS_PERMANENT)          /* it may be changed by hand */
            status = diag_wrap(diag, "%s '%s'", name->type, name->name);
    }
    db_rows_close(rows);
    return status;
}

enum status registry_states(struct db *db, const struct catalog *catalog,
                            registry_row_fn fn, void *arg, struct diag *diag)
{
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(db, catalog_sql(catalog, SQL_CONSUMER_STATES),
                                  NULL, 0, &rows, diag);

    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        struct consumer_row row = {.exists = true};

        status = row_take(rows, &row, diag);
        if (status != STATUS_OK)
            break;
        fn(arg, &row);
    }
    db_rows_close(rows);
    return status;
}

enum status registry_subscribe(struct db *db, const struct catalog *catalog,
                               const struct consumer_name *name,
                               const char *source, int partitions,
                               struct uuid_source *ids, int64_t now_us,
                               struct consumer_row *row, struct diag *diag)
{
    enum status status = registry_read(db, catalog, name, row, diag);

    if (status != STATUS_OK)
        return status;
    if (!row->exists) {
        const struct db_value params[] = {
            db_uuid(uuid_v7(ids, now_us)), db_string(name->type),
            db_string(name->name), db_timestamp(now_us)};

        status = db_execute(db, catalog_sql(catalog, SQL_CONSUMER_INSERT),
                            params, 4, NULL, diag);
        if (status == STATUS_OK)
            status = registry_read(db, catalog, name, row, diag);
        if (status != STATUS_OK)
            return status;
        if (!row->exists)
            return diag_set(diag, STATUS_REFUSED,
                            "the database does not tell the %s '%s' from "
                            "another consumer's name: give it a name that "
                            "differs in more than case or accents",
                            name->type, name->name);
    }
    const struct db_value params[] = {db_string(row->id), db_string(source),
                                      db_integer(partitions)};

    return db_execute(db, catalog_sql(catalog, SQL_CHECKPOINT_INSERT), params,
                      3, NULL, diag);
}

enum status registry_set_state(struct db *db, const struct catalog *catalog,
                               const struct consumer_row *row,
                               enum consumer_state state,
                               enum halt_reason reason, int64_t now_us,
                               struct diag *diag)
{
    const struct db_value params[] = {
        db_string(row->id),
        state == CONSUMER_RUNNING ? db_null() : db_string(state_words[state]),
        reason == HALT_NONE ? db_null() : db_string(reason_words[reason]),
        db_timestamp(now_us)};

    assert((state == CONSUMER_HALTED) == (reason != HALT_NONE));
    return db_queue(db, catalog_sql(catalog, SQL_CONSUMER_SET_STATE), params, 4,
                    1, -1, diag);
}

struct text registry_fingerprint(const struct consumer_row *row)
{
    return row->has_fingerprint ? text_of(row->fingerprint) : TEXT_NONE;
}

static enum status set_fingerprint(struct db *db, const struct catalog *catalog,
                                   struct consumer_row *row, const char *text,
                                   struct diag *diag)
{
    const struct db_value params[] = {
        db_string(row->id), db_string(text),
        row->has_fingerprint ? db_string(row->fingerprint) : db_null()};
    enum status status;

    if (row->has_fingerprint && strcmp(row->fingerprint, text) == 0)
        return STATUS_OK;
    status = db_queue(db, catalog_sql(catalog, SQL_CONSUMER_SET_FINGERPRINT),
                      params, 3, 1, -1, diag);
    if (status == STATUS_OK) {
        row->has_fingerprint = true;
        memcpy(row->fingerprint, text, strlen(text) + 1);
    }
    return status;
}

enum status registry_fingerprint_accept(struct db *db,
                                        const struct catalog *catalog,
                                        struct consumer_row *row,
                                        const struct fingerprint *declared,
                                        struct diag *diag)
{
    char text[FINGERPRINT_MAX + 1];

    fingerprint_accept(registry_fingerprint(row), declared, text);
    return set_fingerprint(db, catalog, row, text, diag);
}

enum status registry_fingerprint_rebuild(struct db *db,
                                         const struct catalog *catalog,
                                         struct consumer_row *row,
                                         const struct fingerprint *declared,
                                         struct diag *diag)
{
    char text[FINGERPRINT_MAX + 1];

    fingerprint_rebuild(registry_fingerprint(row), declared, text);
    return set_fingerprint(db, catalog, row, text, diag);
}

enum status registry_rebuilt(struct db *db, const struct catalog *catalog,
                             const struct consumer_row *row, int64_t epoch,
                             int64_t now_us, struct diag *diag)
{
    const struct db_value params[] = {db_string(row->id), db_integer(epoch),
                                      db_timestamp(now_us)};

    return db_queue(db, catalog_sql(catalog, SQL_CONSUMER_REBUILT), params, 3,
                    1, -1, diag);
}
