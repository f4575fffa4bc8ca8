#include "schema/query_table.h"

#include "base/memory.h"
#include "schema/query_table_fit.h"

#include <strings.h>

#define COLUMN_KEY   "read_model_id"
#define COLUMN_GUARD "message_id"
#define COLUMN_STATE "state"

enum status query_table_name(const char *projection, char out[], size_t size,
                             struct diag *diag)
{
    size_t len = 0;

    for (const char *at = projection; *at != '\0'; at++) {
        bool kept = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                    (*at >= '0' && *at <= '9');

        if (((unsigned char)*at & 0xc0) == 0x80)
            continue; /* one character, however many bytes, becomes one _ */
        if (len + 1 >= size)
            return diag_set(diag, STATUS_CONFIG,
                            "projection \"%s\": its table's name would be "
                            "longer than %zu characters; set `table`",
                            projection, size - 1);
        out[len++] = kept ? *at : '_';
    }
    out[len] = '\0';
    if (names_table_name("table name", out, diag) != STATUS_OK)
        return diag_wrap(diag, "projection \"%s\"; set `table`", projection);
    return STATUS_OK;
}

static bool is_host_column(const char *name)
{
    return strcasecmp(name, COLUMN_KEY) == 0 ||
           strcasecmp(name, COLUMN_GUARD) == 0 ||
           strcasecmp(name, COLUMN_STATE) == 0;
}

static enum status check_field(const struct query_table *table, size_t index,
                               struct diag *diag)
{
    const char *name = table->fields[index].name;
    size_t index_name;

    if (names_identifier("field", name, diag) != STATUS_OK)
        return diag_wrap(diag, "projection \"%s\"", table->projection);
    if (is_host_column(name))
        return diag_set(diag, STATUS_CONFIG,
                        "projection \"%s\": a field may not be called "
                        "\"%s\", which is a column of every query table",
                        table->projection, name);
    for (size_t i = 0; i < index; i++)
        if (strcasecmp(table->fields[i].name, name) == 0)
            return diag_set(diag, STATUS_CONFIG,
                            "projection \"%s\": the fields \"%s\" and \"%s\" "
                            "would be one column",
                            table->projection, table->fields[i].name, name);
    index_name = strlen("idx_") + strlen(table->name) + 1 + strlen(name);
    if (index_name > TABLE_NAME_MAX)
        return diag_set(diag, STATUS_CONFIG,
                        "projection \"%s\": the index idx_%s_%s of field "
                        "\"%s\" would have a name of %zu characters, and %d "
                        "are allowed: shorten the field or set `table`",
                        table->projection, table->name, name, name, index_name,
                        TABLE_NAME_MAX);
    return STATUS_OK;
}

enum status query_table_check(const struct query_table *table,
                              struct diag *diag)
{
    enum status status;

    if (names_table_name("table name", table->name, diag) != STATUS_OK)
        return diag_wrap(diag, "projection \"%s\"", table->projection);
    for (size_t i = 0; i < table->nfields; i++) {
        status = check_field(table, i, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* A database may tell upper from lower case in a table's name, or not. */
static enum status check_not_hosts(const struct query_table *table,
                                   const struct names *names, struct diag *diag)
{
    for (size_t i = 0; i < names_tables(names); i++) {
        enum table_id like;
        const char *own = names_table(names, i, &like);

        if (own != NULL && strcasecmp(own, table->name) == 0)
            return diag_set(diag, STATUS_CONFIG,
                            "projection \"%s\": table \"%s\" is one of the "
                            "host's own and no query table; give the "
                            "projection a table of its own with `table`",
                            table->projection, table->name);
    }
    return STATUS_OK;
}

/* --- the declared shape -------------------------------------------------- */

/* The columns are the caller's to free. */
static struct db_shape declared_shape(const struct query_table *table)
{
    size_t ncolumns = QUERY_TABLE_HOST_COLUMNS + table->nfields;
    struct db_shape_column *columns = mem_grow(NULL, ncolumns,
                                               sizeof(*columns));

    columns[0] = (struct db_shape_column){.name = COLUMN_KEY,
                                          .kind = DB_KIND_KEY,
                                          .not_null = true,
                                          .primary = true};
    columns[1] = (struct db_shape_column){
        .name = COLUMN_GUARD, .kind = DB_KIND_UUID, .not_null = true};
    columns[2] = (struct db_shape_column){
        .name = COLUMN_STATE, .kind = DB_KIND_DOCUMENT, .not_null = true};
    for (size_t i = 0; i < table->nfields; i++) {
        const struct query_field *field = &table->fields[i];

        columns[QUERY_TABLE_HOST_COLUMNS + i] = (struct db_shape_column){
            .name = field->name,
            .kind = field->kind,
            .precision = field->precision,
            .scale = field->scale,
            .indexed = true,
            .unique = field->unique};
    }
    return (struct db_shape){
        .name = table->name, .columns = columns, .ncolumns = ncolumns};
}

/* --- creating ------------------------------------------------------------ */

static enum status missing(struct db *db, const struct query_table *table,
                           const struct db_shape *wanted, struct diag *diag)
{
    struct buffer statements = BUFFER_EMPTY;

    db_print_table(db, wanted, &statements);
    diag_set(diag, STATUS_CONFIG,
             "projection \"%s\": table \"%s\" is missing and schema.create "
             "is off; create it with\n" TEXT_FORMAT,
             table->projection, table->name,
             TEXT_ARGS(buffer_text(&statements)));
    buffer_free(&statements);
    return STATUS_CONFIG;
}

/* Checks the table, or says that there is none. */
static enum status look(struct db *db, const struct names *names,
                        const struct query_table *table,
                        const struct db_shape *wanted, bool create,
                        bool *exists, bool *wrong, struct diag *diag)
{
    struct arena arena = ARENA_EMPTY;
    struct db_shape actual;
    enum status status;

    *wrong = false;

    status = db_describe_table(db, table->name, &arena, &actual, exists, diag);
    if (status == STATUS_OK && *exists)
        status = query_table_fit_check(
            &(struct query_table_fit){.db = db,
                                      .names = names,
                                      .table = table,
                                      .wanted = wanted,
                                      .actual = &actual,
                                      .create = create,
                                      .wrong = wrong,
                                      .diag = diag});
    arena_free(&arena);
    return status;
}

/* A new table beside an old checkpoint would hold what comes from now on and
 * look as if it were all. */
static enum status check_progress(struct db *db, const struct names *names,
                                  const struct query_table *table,
                                  struct diag *diag)
{
    const struct db_value name = db_string(table->projection);
    struct buffer text = BUFFER_EMPTY;
    struct db_sql sql;
    int64_t position = 0;
    bool found = false;
    enum status status = catalog_fill(
        catalog_raw(db_dialect(db), SQL_SCHEMA_PROJECTION_PROGRESS),
        names->fill, &text, diag);

    if (status == STATUS_OK) {
        sql = db_sql_make(buffer_text(&text), DB_HOST);
        status = db_query_int64(db, &sql, &name, 1, &position, &found, diag);
    }
    if (status == STATUS_OK && found) {
        buffer_clear(&text);
        query_table_fit_remedy(names, table, false, &text);
        status = diag_set(diag, STATUS_CONFIG,
                          "projection \"%s\" has read up to position %lld, but "
                          "its table \"%s\" is not there (dropped, or another "
                          "name in `table`): a new one would lack what was "
                          "read; bring it back, or let the projection start "
                          "anew by `moontide rebuild %s`, or by hand:%s",
                          table->projection, (long long)position, table->name,
                          table->projection, text.data);
    }
    buffer_free(&text);
    return status;
}

/* Another program may create the table at the same time: look again under the
 * writer's lock. */
static enum status create_table(struct db *db, const struct names *names,
                                const struct query_table *table,
                                const struct db_shape *wanted,
                                struct diag *diag)
{
    bool exists, wrong;
    enum status status;

    status = db_begin_schema(db, diag);
    if (status != STATUS_OK)
        return status;
    status = look(db, names, table, wanted, true, &exists, &wrong, diag);
    if (status == STATUS_OK && !exists)
        status = check_progress(db, names, table, diag);
    if (status == STATUS_OK && !exists) {
        status = db_create_table(db, wanted, diag);
        if (status != STATUS_OK)
            diag_wrap(diag, "projection \"%s\": cannot create table \"%s\"",
                      table->projection, table->name);
    }
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    return status;
}

enum status query_table_prepare(struct db *db, const struct names *names,
                                const struct query_table *table, bool create,
                                struct diag *diag)
{
    struct db_shape wanted;
    bool exists = false, wrong;
    enum status status;

    status = query_table_check(table, diag);
    if (status == STATUS_OK)
        status = check_not_hosts(table, names, diag);
    if (status != STATUS_OK)
        return status;
    wanted = declared_shape(table);

    status = db_begin_read(db, diag);
    if (status == STATUS_OK) {
        status = look(db, names, table, &wanted, create, &exists, &wrong, diag);
        db_rollback(db);
    }
    if (status == STATUS_CONFLICT && create) {
        exists = false; /* it is being made: look again under the lock */
        status = STATUS_OK;
    }
    if (status == STATUS_OK && !exists)
        status = create ? create_table(db, names, table, &wanted, diag)
                        : missing(db, table, &wanted, diag);
    mem_free((void *)wanted.columns);
    return status;
}

/* --- another shape on purpose -------------------------------------------- */

enum status query_table_look(struct db *db, const struct names *names,
                             const struct query_table *table,
                             enum query_table_state *state, struct diag *diag)
{
    struct db_shape wanted;
    bool exists = false, wrong = false;
    enum status status = query_table_check(table, diag);

    if (status == STATUS_OK)
        status = check_not_hosts(table, names, diag);
    if (status == STATUS_OK)
        status = db_begin_read(db, diag);
    if (status != STATUS_OK)
        return status;
    wanted = declared_shape(table);
    status = look(db, names, table, &wanted, true, &exists, &wrong, diag);
    db_rollback(db);
    mem_free((void *)wanted.columns);
    if (status == STATUS_CONFIG && wrong)
        status = STATUS_OK;
    if (wrong)
        *state = QUERY_TABLE_WRONG;
    else
        *state = exists ? QUERY_TABLE_FITS : QUERY_TABLE_MISSING;
    return status;
}

enum status query_table_drop(struct db *db, const struct names *names,
                             const struct query_table *table, struct diag *diag)
{
    enum query_table_state state;
    struct buffer drop = BUFFER_EMPTY;
    enum status status = query_table_look(db, names, table, &state, diag);

    if (status != STATUS_OK || state != QUERY_TABLE_WRONG)
        return status;
    buffer_append_string(&drop, "DROP TABLE ");
    db_print_name(db, table->name, &drop);
    status = db_begin_schema(db, diag);
    if (status == STATUS_OK) {
        status = db_script(db, buffer_text(&drop), DB_HOST, diag);
        if (status == STATUS_OK)
            status = db_commit(db, NULL, diag);
        db_rollback(db);
    }
    if (status != STATUS_OK)
        diag_wrap(diag, "projection \"%s\": cannot drop table \"%s\"",
                  table->projection, table->name);
    buffer_free(&drop);
    return status;
}
