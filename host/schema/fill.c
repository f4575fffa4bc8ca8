#include "schema/fill.h"

#include <stdio.h>

/* Tables that an aggregate type may have of its own. */
static const enum table_id OWN[] = {TABLE_EVENT_STORE, TABLE_SNAPSHOTS};

static bool contains(struct text text, const char *part)
{
    return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static bool mentions(struct text raw, enum table_id id)
{
    char part[TABLE_NAME_MAX + 4];

    snprintf(part, sizeof(part), "${%s}", names_placeholder(id));
    return contains(raw, part);
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

/* A name is a run of name characters; comments may hold anything. */
static enum status check_lengths(struct text filled, struct diag *diag)
{
    const char *at = filled.data;
    const char *end = at + filled.len;

    while (at < end) {
        const char *start = at;

        if (end - at >= 2 && at[0] == '-' && at[1] == '-') {
            at = memchr(at, '\n', (size_t)(end - at));
            if (at == NULL)
                break;
        } else if (!is_name_char(*at)) {
            at++;
        } else {
            while (at < end && is_name_char(*at))
                at++;
            if (at - start > TABLE_NAME_MAX)
                return diag_set(diag, STATUS_CONFIG,
                                "the name %.*s, made from a table's name, has "
                                "%d characters and may have %d: choose a "
                                "shorter schema.prefix or table name",
                                (int)(at - start), start, (int)(at - start),
                                TABLE_NAME_MAX);
        }
    }
    return STATUS_OK;
}

void fill_routine(const char *table, char out[FILL_ROUTINE_MAX + 1])
{
    if (strcmp(table, "EVENT_STORE") == 0)
        snprintf(out, FILL_ROUTINE_MAX + 1, "moontide_append");
    else
        snprintf(out, FILL_ROUTINE_MAX + 1, "append_%s", table);
}

static enum status fill_once(struct text raw, const struct catalog_name *fill,
                             const char *table, fill_fn fn, void *arg,
                             struct diag *diag)
{
    struct catalog_name all[TABLE_COUNT + 2];
    char routine[FILL_ROUTINE_MAX + 1];
    struct buffer filled = BUFFER_EMPTY;
    enum status status;

    fill_routine(fill[TABLE_EVENT_STORE].value, routine);
    memcpy(all, fill, TABLE_COUNT * sizeof(*all));
    all[TABLE_COUNT] = (struct catalog_name){FILL_ROUTINE, routine};
    all[TABLE_COUNT + 1] = (struct catalog_name){NULL, NULL};
    status = catalog_fill(raw, all, &filled, diag);
    if (status == STATUS_OK)
        status = check_lengths(buffer_text(&filled), diag);
    if (status == STATUS_OK)
        status = fn(arg, buffer_text(&filled), table, diag);
    buffer_free(&filled);
    return status;
}

enum status fill_each(struct text raw, const struct names *names, fill_fn fn,
                      void *arg, struct diag *diag)
{
    struct catalog_name fill[TABLE_COUNT + 1];
    enum status status;

    status = fill_once(raw, names->fill, NULL, fn, arg, diag);
    for (size_t i = 0; i < sizeof(OWN) / sizeof(OWN[0]); i++) {
        if (!mentions(raw, OWN[i]))
            continue;
        memcpy(fill, names->fill, sizeof(fill));
        for (size_t j = TABLE_COUNT;
             j < names_tables(names) && status == STATUS_OK; j++) {
            enum table_id like;
            const char *own = names_table(names, j, &like);

            fill[OWN[i]].value = own;
            if (own != NULL && like == OWN[i])
                status = fill_once(raw, fill, own, fn, arg, diag);
        }
    }
    return status;
}

static enum status execute(struct db *db, const struct catalog_name *fill,
                           enum sql_statement statement,
                           const struct db_value *params, size_t nparams,
                           struct diag *diag)
{
    struct buffer text = BUFFER_EMPTY;
    struct db_sql sql;
    enum status status;

    status = catalog_fill(catalog_raw(db_dialect(db), statement), fill, &text,
                          diag);
    if (status == STATUS_OK) {
        sql = db_sql_make(buffer_text(&text), DB_HOST);
        status = db_execute(db, &sql, params, nparams, NULL, diag);
    }
    buffer_free(&text);
    return status;
}

enum status fill_execute(struct db *db, const struct names *names,
                         enum sql_statement statement,
                         const struct db_value *params, size_t nparams,
                         struct diag *diag)
{
    return execute(db, names->fill, statement, params, nparams, diag);
}

enum status fill_execute_on(struct db *db, const char *table,
                            enum sql_statement statement, struct diag *diag)
{
    const struct catalog_name fill[] = {
        {names_placeholder(TABLE_EVENT_STORE), table}, {NULL, NULL}};

    return execute(db, fill, statement, NULL, 0, diag);
}

enum status fill_query(struct db *db, const struct names *names,
                       enum sql_statement statement, int64_t *value,
                       bool *found, struct diag *diag)
{
    struct buffer text = BUFFER_EMPTY;
    struct db_sql sql;
    enum status status;

    status = catalog_fill(catalog_raw(db_dialect(db), statement), names->fill,
                          &text, diag);
    if (status == STATUS_OK) {
        sql = db_sql_make(buffer_text(&text), DB_HOST);
        status = db_query_int64(db, &sql, NULL, 0, value, found, diag);
    }
    buffer_free(&text);
    return status;
}

const char *fill_script_of(const char *dialect, enum table_id id)
{
    size_t count = 0;
    const struct catalog_script *scripts = catalog_scripts(dialect, &count);
    char part[TABLE_NAME_MAX + 32];

    snprintf(part, sizeof(part), "IF NOT EXISTS ${%s}", names_placeholder(id));
    for (size_t i = 0; i < count; i++)
        if (contains(scripts[i].text, part))
            return scripts[i].name;
    return NULL;
}
