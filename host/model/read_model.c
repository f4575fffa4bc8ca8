#include "model/read_model.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "db/shape.h"
#include "model/field_value.h"

#define WHERE_MAX 32

/* The declared field of that name; NULL (USAGE, with the nearest one) when
 * there is none. */
static const struct declaration_field *
find_field(const struct declaration *declaration, const char *name,
           bool key_too, struct diag *diag)
{
    const char **names;
    const char *nearest;

    for (size_t i = 0; i < declaration->nfields; i++)
        if (strcmp(declaration->fields[i].name, name) == 0)
            return &declaration->fields[i];
    names = mem_alloc((declaration->nfields + 2) * sizeof(*names));
    for (size_t i = 0; i < declaration->nfields; i++)
        names[i] = declaration->fields[i].name;
    if (key_too)
        names[declaration->nfields] = "key";
    nearest = text_nearest(name, names);
    (void)diag_set(
        diag, STATUS_USAGE, "projection '%s' declares no field '%s'%s%s%s",
        declaration->name, name, nearest != NULL ? "; did you mean '" : "",
        nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    mem_free(names);
    return NULL;
}

/* "F=" and "F=null" ask for what is not there; a text may be these as well. */
static bool asks_for_none(const char *value)
{
    return value[0] == '\0' || strcmp(value, "null") == 0;
}

static enum status add_conditions(const struct db *db,
                                  const struct read_model_request *request,
                                  struct arena *arena, struct buffer *sql,
                                  struct db_value *params, size_t *nparams,
                                  struct diag *diag)
{
    for (size_t i = 0; i < request->nwhere; i++) {
        const struct read_model_where *where = &request->where[i];
        const struct declaration_field *field = find_field(
            request->declaration, where->field, false, diag);
        enum status status;
        bool none;

        if (field == NULL)
            return STATUS_USAGE;
        none = asks_for_none(where->value);
        status = field_value_parse(field, text_of(where->value), arena,
                                   &params[*nparams], diag);
        if (status != STATUS_OK && !none) {
            if (diag != NULL)
                diag->status = STATUS_USAGE;
            return STATUS_USAGE;
        }
        buffer_append_string(sql, i == 0 ? " WHERE (" : " AND (");
        db_print_name(db, field->name, sql);
        if (none)
            buffer_append_string(sql, " IS NULL");
        if (status == STATUS_OK) {
            if (none) {
                buffer_append_string(sql, " OR ");
                db_print_name(db, field->name, sql);
            }
            buffer_printf(sql, " = ?%zu", ++*nparams);
        }
        buffer_append_char(sql, ')');
    }
    if (request->key != NULL) {
        params[*nparams] = db_string(request->key);
        buffer_append_string(sql, request->nwhere == 0 ? " WHERE " : " AND ");
        buffer_printf(sql, "\"read_model_id\" = ?%zu", ++*nparams);
    }
    return STATUS_OK;
}

static enum status add_order(const struct db *db,
                             const struct read_model_request *request,
                             struct buffer *sql, struct diag *diag)
{
    const char *order = request->order != NULL ? request->order : "key";
    bool falling = order[0] == '-';
    const struct declaration_field *field;

    order += falling;
    buffer_append_string(sql, " ORDER BY ");
    if (strcmp(order, "key") != 0) {
        field = find_field(request->declaration, order, true, diag);
        if (field == NULL)
            return STATUS_USAGE;
        db_print_name(db, field->name, sql);
        buffer_append_string(sql, falling ? " DESC, " : ", ");
        falling = false;
    }
    buffer_append_string(sql, "\"read_model_id\"");
    buffer_append_string(sql, falling ? " DESC" : "");
    return STATUS_OK;
}

struct taker {
    read_model_fn fn;
    void *arg;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct taker *taker = arg;

    return taker->fn(taker->arg, db_get_text(row, 0), db_get_text(row, 1),
                     diag);
}

static enum status run(struct db *db, struct text sql,
                       const struct db_value *params, size_t nparams,
                       read_model_fn fn, void *arg, struct diag *diag)
{
    const struct db_sql statement = db_sql_make(sql, DB_HOST);
    struct taker taker = {fn, arg};

    return db_rows_each(db, &statement, params, nparams, take_row, &taker,
                        diag);
}

enum status read_model_read(struct db *db,
                            const struct read_model_request *request,
                            read_model_fn fn, void *arg, struct diag *diag)
{
    struct db_value params[WHERE_MAX + 2];
    struct arena arena = ARENA_EMPTY;
    struct buffer sql = BUFFER_EMPTY;
    size_t nparams = 0;
    enum status status;

    if (request->declaration->kind != DECLARATION_PROJECTION)
        return diag_set(diag, STATUS_USAGE,
                        "'%s' keeps no read models: it writes tables of its "
                        "own; query them with SQL",
                        request->declaration->name);
    if (request->nwhere > WHERE_MAX)
        return diag_set(diag, STATUS_USAGE, "more than %d conditions",
                        WHERE_MAX);
    buffer_append_string(&sql, "SELECT \"read_model_id\", \"state\" FROM ");
    db_print_name(db, request->declaration->table, &sql);
    status = add_conditions(db, request, &arena, &sql, params, &nparams, diag);
    if (status == STATUS_OK)
        status = add_order(db, request, &sql, diag);
    if (status == STATUS_OK && request->limit > 0) {
        params[nparams] = db_integer(request->limit);
        buffer_printf(&sql, " LIMIT ?%zu", ++nparams);
    }
    if (status == STATUS_OK)
        status = run(db, buffer_text(&sql), params, nparams, fn, arg, diag);
    buffer_free(&sql);
    arena_free(&arena);
    return status;
}

enum status read_model_explain(struct db *db,
                               const struct declaration *declaration, bool ran,
                               enum status failed, struct diag *diag)
{
    struct arena arena = ARENA_EMPTY;
    struct db_shape shape;
    bool exists = true;
    enum status status;

    if (failed != STATUS_PERMANENT && failed != STATUS_INVALID)
        return failed;
    status = db_describe_table(db, declaration->table, &arena, &shape, &exists,
                               NULL);
    arena_free(&arena);
    if (status != STATUS_OK || exists)
        return failed;
    if (ran)
        return diag_set(diag, STATUS_FAILED,
                        "the table %s of projection '%s' is missing, although "
                        "its messages were applied: `moontide rebuild %s` "
                        "makes it anew and a running host fills it",
                        declaration->table, declaration->name,
                        declaration->name);
    return diag_set(diag, STATUS_FAILED,
                    "projection '%s' has not run on this database yet; "
                    "`moontide run --until-idle` makes its table %s and fills "
                    "it",
                    declaration->name, declaration->table);
}
