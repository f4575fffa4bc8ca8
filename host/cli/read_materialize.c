#include "cli/read_materialize.h"

#include "base/json.h"
#include "base/json_member.h"
#include "cli/progress.h"
#include "cli/read_table.h"
#include "run/application.h"
#include "run/materialize.h"
#include "run/state_diff.h"

#include <inttypes.h>

static void show_progress(void *arg, int64_t done, int64_t total)
{
    progress_part(arg, done, total);
}

/* --- JSON ---------------------------------------------------------------- */

struct differences {
    struct buffer *out;
    bool first;
};

static void write_difference(void *arg, struct text path, struct text stored,
                             struct text computed)
{
    struct differences *list = arg;
    bool first = true;

    buffer_append_string(list->out, list->first ? "{" : ",{");
    list->first = false;
    json_member_text(list->out, &first, "path", path);
    json_member_raw(list->out, &first, "stored", stored);
    json_member_raw(list->out, &first, "computed", computed);
    buffer_append_char(list->out, '}');
}

static void print_json(struct cli *cli, struct text key,
                       const struct materialized *result)
{
    struct buffer out = BUFFER_EMPTY;
    struct differences list = {.out = &out, .first = true};
    bool first = true;

    buffer_append_string(&out, "[{");
    json_member_text(&out, &first, "key", key);
    json_member_raw(&out, &first, "state", result->state);
    json_member_int64(&out, &first, "position", result->position);
    json_member_int64(&out, &first, "messages", result->messages);
    json_member_raw(&out, &first, "stored", result->stored);
    json_member_int64(&out, &first, "stored_position", result->stored_position);
    json_member_bool(&out, &first, "compared", result->incomparable == NULL);
    json_member_string(&out, &first, "reason", result->incomparable);
    json_write_key(&out, &first, "differences");
    buffer_append_char(&out, '[');
    if (result->incomparable == NULL)
        state_diff(result->stored, result->expected, write_difference, &list);
    buffer_append_string(&out, "]}]\n");
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

/* --- for people ---------------------------------------------------------- */

static void add_difference(void *arg, struct text path, struct text stored,
                           struct text computed)
{
    struct output_table *table = arg;

    output_cell(table, path.len > 0 ? path : text_of("(all of it)"));
    output_cell(table, stored.data != NULL ? stored : text_of("(absent)"));
    output_cell(table, computed.data != NULL ? computed : text_of("(absent)"));
}

static void print_differences(struct cli *cli,
                              const struct materialized *result)
{
    const char *const headings[] = {"member", "stored", "computed", NULL};
    struct output_table table = {.ncolumns = 0};

    output_table_begin(&table, headings, cli->color_out);
    state_diff(result->stored, result->expected, add_difference, &table);
    output_table_end(&table, cli->out);
}

static void print_text(struct cli *cli, const struct declaration *declaration,
                       struct text key, const struct materialized *result)
{
    bool fits = materialized_fits(result);
    struct read_table table;

    if (result->state.data != NULL) {
        read_table_begin(&table, declaration, cli->color_out);
        read_table_row(&table, key, result->state);
        read_table_end(&table, cli->out);
    }
    if (!fits) {
        fputs(result->state.data != NULL ? "\n" : "", cli->out);
        print_differences(cli, result);
    }
    if (cli->quiet)
        return;
    fprintf(cli->err,
            "computed from %" PRId64 " %s up to position %" PRId64 "; ",
            result->messages, result->messages == 1 ? "message" : "messages",
            result->position);
    if (result->incomparable != NULL)
        fprintf(cli->err, "not compared with the stored one: %s\n",
                result->incomparable);
    else
        fprintf(cli->err, "the stored one %s at position %" PRId64 "\n",
                fits ? "is the same" : "was another", result->stored_position);
}

static enum status verdict(const struct declaration *declaration,
                           const char *key, const struct materialized *result,
                           struct diag *diag)
{
    if (!materialized_fits(result))
        return diag_set(diag, STATUS_REFUSED,
                        "the read model '%.255s' of projection '%s' is not "
                        "what its messages up to position %" PRId64
                        " give; `moontide rebuild %s --key` makes it anew",
                        key, declaration->name, result->stored_position,
                        declaration->name);
    if (result->state.data == NULL)
        return diag_set(diag, STATUS_FAILED,
                        "the messages of projection '%s' give no read model "
                        "with the key '%.255s'",
                        declaration->name, key);
    return STATUS_OK;
}

enum status read_materialize(struct cli *cli, struct application *app,
                             const struct declaration *declaration,
                             struct diag *diag)
{
    struct progress progress;
    const struct materialize_request request = {
        .declaration = declaration,
        .key = text_of(cli->args[1]),
        .progress = show_progress,
        .arg = &progress,
    };
    struct materialized result;
    enum status status;

    progress_start(&progress, cli, "positions");
    status = materialize(app, &request, &result, diag);
    progress_end(&progress);
    if (status != STATUS_OK)
        return status;
    if (cli->json)
        print_json(cli, request.key, &result);
    else
        print_text(cli, declaration, request.key, &result);
    status = verdict(declaration, cli->args[1], &result, diag);
    materialized_free(&result);
    return status;
}
