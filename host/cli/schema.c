#include "cli/cli.h"

#include "base/json.h"
#include "base/json_member.h"
#include "db/url.h"
#include "run/application.h"
#include "schema/schema.h"

static enum status print_schema(struct cli *cli, const char *dialect,
                                const struct names *names, struct diag *diag)
{
    struct buffer ddl = BUFFER_EMPTY;
    struct buffer out = BUFFER_EMPTY;
    bool first = true;
    enum status status = schema_print(dialect, names, &ddl, diag);

    if (status == STATUS_OK && cli->json) {
        buffer_append_char(&out, '{');
        json_member_string(&out, &first, "dialect", dialect);
        json_member_text(&out, &first, "ddl", buffer_text(&ddl));
        buffer_append_string(&out, "}\n");
        fwrite(out.data, 1, out.len, cli->out);
    } else if (status == STATUS_OK) {
        fwrite(buffer_text(&ddl).data, 1, ddl.len, cli->out);
    }
    buffer_free(&ddl);
    buffer_free(&out);
    return status;
}

/* The report has a line per change. */
static void print_report(struct cli *cli, struct text report)
{
    struct buffer out = BUFFER_EMPTY;

    if (!cli->json) {
        fwrite(report.data, 1, report.len, cli->out);
        return;
    }
    buffer_append_string(&out, "{\"changes\":[");
    for (size_t at = 0; at < report.len;) {
        const char *line = report.data + at;
        const char *end = memchr(line, '\n', report.len - at);
        size_t len = end != NULL ? (size_t)(end - line) : report.len - at;

        if (at > 0)
            buffer_append_char(&out, ',');
        json_write_string(&out, (struct text){line, len});
        at += len + 1;
    }
    buffer_append_string(&out, "]}\n");
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

static enum status upgrade_schema(struct cli *cli,
                                  const struct settings *settings,
                                  struct diag *diag)
{
    struct schema_options options = {
        .names = &settings->names,
        .partitions = settings->partitions,
        .create = true,
    };
    struct buffer report = BUFFER_EMPTY;
    struct db *db;
    enum status status = application_connect(settings, false, &db, diag);

    if (status != STATUS_OK)
        return status;
    status = schema_upgrade(db, &options, &report, diag);
    if (status == STATUS_OK)
        print_report(cli, buffer_text(&report));
    buffer_free(&report);
    db_close(db);
    return status;
}

static void print_names(struct cli *cli, const struct names *names)
{
    struct buffer out = BUFFER_EMPTY;

    schema_names(names, cli->json, &out);
    fwrite(out.data, 1, out.len, cli->out);
    buffer_free(&out);
}

enum status cli_schema(struct cli *cli, struct diag *diag)
{
    const char *word = cli->nargs > 0 ? cli->args[0] : "print";
    const char *dialect = cli_value(cli, "dialect");
    bool raw = cli_given(cli, "raw");
    const struct settings *settings;
    enum status status;

    if (strcmp(word, "print") != 0) {
        if (dialect != NULL || raw)
            return diag_set(diag, STATUS_USAGE,
                            "schema %s takes no --dialect and no --raw; "
                            "they belong to schema print",
                            word);
        status = cli_settings(cli, &settings, diag);
        if (status != STATUS_OK)
            return status;
        if (strcmp(word, "upgrade") == 0)
            return upgrade_schema(cli, settings, diag);
        print_names(cli, &settings->names);
        return STATUS_OK;
    }
    if (raw && dialect != NULL) /* needs no configuration */
        return print_schema(cli, dialect, NULL, diag);
    status = cli_settings(cli, &settings, diag);
    if (status != STATUS_OK)
        return status;
    if (dialect == NULL)
        dialect = db_url_dialect(settings->database);
    return print_schema(cli, dialect, raw ? NULL : &settings->names, diag);
}
