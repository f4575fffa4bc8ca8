#include "cli/cli.h"
#include "cli/output.h"

#include "base/hash.h"
#include "base/json.h"
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
    struct output_table table;
    struct buffer scratch;
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

/* Member `name` of a state, as people read it: strings without quotes, a
 * missing member and null as nothing. */
static void member_text(struct reader *reader, struct json_value state,
                        const char *name, struct buffer *out)
{
    struct json_members members;
    struct json_value value;
    struct text key;

    if (state.kind != JSON_OBJECT)
        return;
    members = json_members_of(state);
    while (json_members_next(&members, &reader->scratch, &key, &value)) {
        if (!text_equal(key, text_of(name)))
            continue;
        if (value.kind == JSON_STRING)
            json_decode_string(value, out);
        else if (value.kind != JSON_NULL)
            buffer_append_text(out, value.raw);
        return;
    }
}

static void write_json(struct reader *reader, struct text key,
                       struct text state)
{
    struct buffer out = BUFFER_EMPTY;
    bool first = true;

    buffer_append_string(&out, reader->count > 1 ? ",\n{" : "[{");
    json_write_key(&out, &first, "key");
    json_write_string(&out, key);
    json_write_key(&out, &first, "state");
    buffer_append_text(&out, state);
    json_write_key(&out, &first, "position");
    buffer_printf(&out, "%" PRId64 "}",
                  reader->positions[hash_partition(key, reader->partitions)]);
    fwrite(out.data, 1, out.len, reader->cli->out);
    buffer_free(&out);
}

static void add_row(struct reader *reader, struct text key, struct text state)
{
    struct json_value value = json_first(state);
    struct buffer cell = BUFFER_EMPTY;

    output_cell(&reader->table, key);
    for (size_t i = 0; i < reader->declaration->nfields; i++) {
        buffer_clear(&cell);
        member_text(reader, value, reader->declaration->fields[i].name, &cell);
        output_cell(&reader->table, buffer_text(&cell));
    }
    if (reader->declaration->nfields == 0)
        output_cell(&reader->table, state);
    buffer_free(&cell);
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
        add_row(reader, key, state);
    }
    return STATUS_OK;
}

/* --- the whole answer ---------------------------------------------------- */

static bool is_number(enum field_type type)
{
    return type == FIELD_INTEGER || type == FIELD_DOUBLE ||
           type == FIELD_DECIMAL;
}

static void begin_table(struct reader *reader)
{
    const struct declaration *declaration = reader->declaration;
    const char **headings = mem_alloc((declaration->nfields + 3) *
                                      sizeof(*headings));
    struct buffer *names = mem_alloc((declaration->nfields + 1) *
                                     sizeof(*names));

    headings[0] = "key";
    for (size_t i = 0; i < declaration->nfields; i++) {
        buffer_printf(&names[i], "%s%s",
                      is_number(declaration->fields[i].type) ? ">" : "",
                      declaration->fields[i].name);
        headings[i + 1] = names[i].data;
    }
    if (declaration->nfields == 0)
        headings[1] = "state";
    output_table_begin(&reader->table, headings, reader->cli->color_out);
    for (size_t i = 0; i < declaration->nfields; i++)
        buffer_free(&names[i]);
    mem_free(names);
    mem_free(headings);
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
        status = read_model_explain(app->db, request->declaration, status,
                                    diag);
    return status;
}

static enum status print_all(struct reader *reader, struct application *app,
                             const struct read_model_request *request,
                             struct diag *diag)
{
    struct cli *cli = reader->cli;
    enum status status;

    if (!cli->json)
        begin_table(reader);
    status = read_all(reader, app, request, diag);
    if (cli->json && reader->count > 0)
        fputs("]\n", cli->out);
    else if (cli->json && status == STATUS_OK)
        fputs("[]\n", cli->out);
    else if (status == STATUS_OK && reader->count > 0)
        output_table_end(&reader->table, cli->out);
    else if (!cli->json)
        output_table_free(&reader->table);
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
        .scratch = BUFFER_EMPTY,
    };
    enum status status = find_projection(app->script, cli->args[0],
                                         &request->declaration, diag);

    if (status != STATUS_OK)
        return status;
    reader.declaration = request->declaration;
    reader.positions = mem_alloc((size_t)reader.partitions *
                                 sizeof(*reader.positions));
    status = print_all(&reader, app, request, diag);
    mem_free(reader.positions);
    buffer_free(&reader.scratch);
    return status;
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
