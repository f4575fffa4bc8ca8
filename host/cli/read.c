#include "cli/cli.h"
#include "cli/read_materialize.h"
#include "cli/read_table.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/json_member.h"
#include "base/memory.h"
#include "model/read_model.h"
#include "run/application.h"
#include "run/status.h"

#include <inttypes.h>

#define NAMES_MAX 64 /* projections named in a suggestion */

struct reader {
    struct cli *cli;
    const struct declaration *declaration;
    int64_t *positions; /* checkpoint by partition */
    int partitions;
    struct read_table table;
    size_t count;
};

/* --- finding the projection ---------------------------------------------- */

static enum status find_projection(const struct script *script,
                                   const char *name,
                                   const struct declaration **found,
                                   struct diag *diag)
{
    const char *names[NAMES_MAX + 1];
    const char *near;
    size_t nnames = 0;
    size_t count = 0;
    const struct declaration *declarations = script_declarations(script,
                                                                 &count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(declarations[i].name, name) == 0) {
            *found = &declarations[i];
            return STATUS_OK;
        }
        if (nnames < NAMES_MAX)
            names[nnames++] = declarations[i].name;
    }
    names[nnames] = NULL;
    near = text_nearest(name, names);
    return diag_set(diag, STATUS_USAGE,
                    "no projection is called '%.200s'%s%s%s; moontide check "
                    "lists them",
                    name, near != NULL ? "; did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?" : "");
}

/* --- one read model ------------------------------------------------------ */

static void write_json(struct reader *reader, struct text key,
                       struct text state)
{
    struct buffer out = BUFFER_EMPTY;
    bool first = true;

    buffer_append_string(&out, reader->count > 1 ? ",\n{" : "[{");
    json_member_text(&out, &first, "key", key);
    json_member_raw(&out, &first, "state", state);
    json_write_key(&out, &first, "position");
    buffer_printf(&out, "%" PRId64 "}",
                  reader->positions[hash_partition(key, reader->partitions)]);
    fwrite(out.data, 1, out.len, reader->cli->out);
    buffer_free(&out);
}

static enum status on_read_model(void *arg, struct text key, struct text state,
                                 struct diag *diag)
{
    struct reader *reader = arg;

    reader->count++;
    if (reader->cli->json) {
        write_json(reader, key, state);
        if (ferror(reader->cli->out) != 0)
            return cli_flush(reader->cli, diag);
    } else {
        read_table_row(&reader->table, key, state);
    }
    return STATUS_OK;
}

/* --- the whole answer ---------------------------------------------------- */

static bool has_run(const struct reader *reader)
{
    for (int p = 0; p < reader->partitions; p++)
        if (reader->positions[p] > 0)
            return true;
    return false;
}

static enum status read_all(struct reader *reader, struct application *app,
                            const struct read_model_request *request,
                            struct diag *diag)
{
    enum status status = db_begin_read(app->db, diag);

    if (status == STATUS_OK)
        status = status_positions(app, request->declaration, reader->positions,
                                  (size_t)reader->partitions, diag);
    if (status == STATUS_OK)
        status = read_model_read(app->db, request, on_read_model, reader, diag);
    db_rollback(app->db);
    if (status != STATUS_OK)
        status = read_model_explain(app->db, request->declaration,
                                    has_run(reader), status, diag);
    return status;
}

static enum status print_all(struct reader *reader, struct application *app,
                             const struct read_model_request *request,
                             struct diag *diag)
{
    struct cli *cli = reader->cli;
    enum status status;

    if (!cli->json)
        read_table_begin(&reader->table, reader->declaration, cli->color_out);
    status = read_all(reader, app, request, diag);
    if (cli->json && reader->count > 0)
        fputs("]\n", cli->out);
    else if (cli->json && status == STATUS_OK)
        fputs("[]\n", cli->out);
    else if (status == STATUS_OK && reader->count > 0)
        read_table_end(&reader->table, cli->out);
    else if (!cli->json)
        read_table_free(&reader->table);
    if (status == STATUS_OK && reader->count == 0 && request->key != NULL)
        return diag_set(diag, STATUS_FAILED,
                        "projection '%s' has no read model with the key "
                        "'%.255s'",
                        request->declaration->name, request->key);
    if (status == STATUS_OK && reader->count == 0 && !cli->json && !cli->quiet)
        fprintf(cli->err, "no read models\n");
    return status;
}

/* --- the command line ---------------------------------------------------- */

struct where_list {
    struct read_model_where *items;
    size_t count;
};

/* F=V of every --where; the names are copies. */
static enum status parse_where(const struct cli *cli, struct where_list *list,
                               struct diag *diag)
{
    const char *given;

    while ((given = cli_value_at(cli, "where", list->count)) != NULL) {
        const char *equals = strchr(given, '=');

        if (equals == NULL || equals == given)
            return diag_set(diag, STATUS_USAGE,
                            "--where takes FIELD=VALUE, not '%.200s'", given);
        list->items = mem_grow(list->items, list->count + 1,
                               sizeof(*list->items));
        list->items[list->count++] = (struct read_model_where){
            .field = mem_copy_text(given, (size_t)(equals - given)),
            .value = equals + 1,
        };
    }
    return STATUS_OK;
}

static void free_where(struct where_list *list)
{
    for (size_t i = 0; list->items != NULL && i < list->count; i++)
        mem_free((char *)list->items[i].field);
    mem_free(list->items);
}

/* "F:desc" is "-F", "F:asc" is "F". */
static const char *parse_order(const char *given, struct buffer *out)
{
    size_t len;

    if (given == NULL)
        return NULL;
    len = strlen(given);
    if (len > 5 && strcmp(given + len - 5, ":desc") == 0) {
        buffer_append_char(out, '-');
        len -= 5;
    } else if (len > 4 && strcmp(given + len - 4, ":asc") == 0) {
        len -= 4;
    }
    buffer_append(out, given, len);
    return out->data;
}

static enum status read_projection(struct cli *cli, struct application *app,
                                   struct read_model_request *request,
                                   struct diag *diag)
{
    struct reader reader = {
        .cli = cli,
        .partitions = app->settings->partitions,
    };
    enum status status = find_projection(app->script, cli->args[0],
                                         &request->declaration, diag);

    if (status != STATUS_OK)
        return status;
    if (cli_given(cli, "materialize"))
        return read_materialize(cli, app, request->declaration, diag);
    reader.declaration = request->declaration;
    reader.positions = mem_alloc((size_t)reader.partitions *
                                 sizeof(*reader.positions));
    status = print_all(&reader, app, request, diag);
    mem_free(reader.positions);
    return status;
}

static enum status check_materialize(const struct cli *cli, struct diag *diag)
{
    if (cli->nargs < 2)
        return diag_set(diag, STATUS_USAGE,
                        "--materialize computes one read model: give its key");
    if (cli_given(cli, "where") || cli_given(cli, "order") ||
        cli_given(cli, "limit"))
        return diag_set(diag, STATUS_USAGE,
                        "--materialize computes one read model: --where, "
                        "--order and --limit do not go with it");
    return STATUS_OK;
}

enum status cli_read(struct cli *cli, struct diag *diag)
{
    struct read_model_request request = {
        .key = cli->nargs > 1 ? cli->args[1] : NULL,
    };
    struct where_list where = {.items = NULL};
    struct buffer order = BUFFER_EMPTY;
    struct application app;
    enum status status = cli_integer(cli, "limit", 0, 1, INT64_MAX,
                                     &request.limit, diag);

    if (status == STATUS_OK && cli_given(cli, "materialize"))
        status = check_materialize(cli, diag);
    if (status != STATUS_OK)
        return status;
    request.order = parse_order(cli_value(cli, "order"), &order);
    status = parse_where(cli, &where, diag);
    request.where = where.items;
    request.nwhere = where.count;
    if (status == STATUS_OK)
        status = cli_open(cli, APPLICATION_READ_ONLY | APPLICATION_SCRIPTS,
                          &app, diag);
    if (status == STATUS_OK) {
        status = read_projection(cli, &app, &request, diag);
        application_close(&app);
    }
    free_where(&where);
    buffer_free(&order);
    return status;
}
