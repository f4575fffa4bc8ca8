#include "run/declared_table.h"

#include "base/memory.h"
#include "consumer/registry.h"

/* The table as the schema layer knows it; free its fields. */
static struct query_table table_of(const struct declaration *declaration)
{
    struct query_field *fields = mem_alloc((declaration->nfields + 1) *
                                           sizeof(*fields));

    for (size_t i = 0; i < declaration->nfields; i++) {
        const struct declaration_field *field = &declaration->fields[i];

        fields[i] = (struct query_field){
            .name = field->name,
            .kind = declaration_field_kind(field->type),
            .precision = field->precision,
            .scale = field->scale,
            .unique = field->unique,
        };
    }
    return (struct query_table){
        .projection = declaration->name,
        .name = declaration->table,
        .fields = fields,
        .nfields = declaration->nfields,
    };
}

enum status declared_table_prepare(struct application *app,
                                   const struct declaration *declaration,
                                   struct diag *diag)
{
    const struct query_table table = table_of(declaration);
    enum status status = query_table_prepare(
        app->db, &app->settings->names, &table, app->settings->schema_create,
        diag);

    mem_free((void *)table.fields);
    return status;
}

/* With what is wrong with it in `diag`, unless it fits. */
static enum status look(struct application *app,
                        const struct declaration *declaration,
                        enum query_table_state *state, struct diag *diag)
{
    const struct query_table table = table_of(declaration);
    enum status status = query_table_look(app->db, &app->settings->names,
                                          &table, state, diag);

    mem_free((void *)table.fields);
    return status;
}

enum status declared_table_unfit(struct application *app,
                                 const struct declaration *declaration,
                                 bool *unfit, struct diag *diag)
{
    enum query_table_state state = QUERY_TABLE_FITS;
    enum status status = STATUS_OK;

    if (declaration->kind == DECLARATION_PROJECTION)
        status = look(app, declaration, &state, diag);
    *unfit = status == STATUS_OK && state != QUERY_TABLE_FITS;
    return status;
}

enum status declared_table_fault(struct application *app,
                                 const struct declaration *declaration,
                                 bool *missing, struct diag *diag)
{
    enum query_table_state state = QUERY_TABLE_FITS;
    enum status status = look(app, declaration, &state, diag);

    *missing = status == STATUS_OK && state == QUERY_TABLE_MISSING;
    return status == STATUS_OK && state != QUERY_TABLE_FITS ? STATUS_CONFIG
                                                            : status;
}

enum status declared_table_drop(struct application *app,
                                const struct declaration *declaration,
                                struct diag *diag)
{
    const struct query_table table = table_of(declaration);
    enum status status = query_table_drop(app->db, &app->settings->names,
                                          &table, diag);

    mem_free((void *)table.fields);
    return status;
}

/* A paused consumer, and one that misses history, wait for an operator. */
static bool would_run(const struct consumer_row *row)
{
    return row->state == CONSUMER_RUNNING ||
           row->state == CONSUMER_REBUILDING ||
           (row->state == CONSUMER_HALTED &&
            row->halt_reason != HALT_MISSING_HISTORY);
}

enum status declared_table_on_change(struct application *app,
                                     const struct declaration *declaration,
                                     bool *anew, struct diag *diag)
{
    const struct consumer_name name = {CONSUMER_TYPE_PROJECTION,
                                       declaration->name};
    struct fingerprint_change change;
    struct consumer_row row;
    enum status status;

    *anew = false;
    if (!declaration->rebuild_on_change || !app->settings->schema_create ||
        declaration->kind != DECLARATION_PROJECTION)
        return STATUS_OK;
    status = db_begin_read(app->db, diag);
    if (status != STATUS_OK)
        return status;
    status = registry_read(app->db, app->catalog, &name, &row, diag);
    db_rollback(app->db);
    if (status != STATUS_OK || !row.exists || !would_run(&row))
        return status;
    change = fingerprint_compare(registry_fingerprint(&row),
                                 &declaration->fingerprint);
    if (!change.part[FINGERPRINT_SHAPE])
        return STATUS_OK;
    return declared_table_unfit(app, declaration, anew, diag);
}

enum status declared_table_script(struct application *app,
                                  const struct declaration *declaration,
                                  struct diag *diag)
{
    enum status status;

    if (declaration->tables_file == NULL || !app->settings->schema_create)
        return STATUS_OK;
    status = db_script(app->db, declaration->tables_sql, DB_SCRIPT, diag);
    if (status != STATUS_PERMANENT)
        return status;
    diag->status = STATUS_CONFIG;
    return diag_wrap(diag, "tables of '%s' (%s)", declaration->name,
                     declaration->tables_file);
}

bool declared_table_made(struct application *app,
                         const struct declaration *declaration,
                         enum status *status, struct diag *diag)
{
    if (*status != STATUS_FAILED || declaration->tables_file == NULL ||
        !app->settings->schema_create || *db_missing_table(app->db) == '\0')
        return false;
    *status = declared_table_script(app, declaration, diag);
    return *status == STATUS_OK;
}
