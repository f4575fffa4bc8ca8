#include "cli/help.h"

#include "cli/parse.h"

#define COLUMN    24 /* where the doc of a verb or option starts */
#define TEXT_COLS 78

/* Puts words into lines; the first line starts at column `at`. */
static void print_wrapped(FILE *out, const char *text, int at, int indent)
{
    while (*text != '\0') {
        int len = (int)strcspn(text, " ");

        if (at > indent && at + 1 + len > TEXT_COLS) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", len, text);
        at += len;
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_entry(FILE *out, const char *left, const char *doc)
{
    int width = fprintf(out, "  %s", left);

    if (width >= COLUMN - 1) {
        fputc('\n', out);
        width = 0;
    }
    fprintf(out, "%*s", COLUMN - width, "");
    print_wrapped(out, doc, COLUMN, COLUMN);
}

static void print_options(FILE *out, const struct cli_option *options)
{
    for (; options->name != NULL; options++) {
        char left[80];

        snprintf(left, sizeof(left), "--%s%s%s%s%s%c", options->name,
                 options->argument == NULL ? ""
                 : options->optional       ? " ["
                                           : " ",
                 options->argument != NULL ? options->argument : "",
                 options->optional ? "]" : "",
                 options->letter != 0 ? ", -" : "", options->letter);
        print_entry(out, left, options->doc);
    }
}

static void print_heading(const struct cli *cli, FILE *out, const char *text)
{
    bool color = out == cli->out ? cli->color_out : cli->color_err;

    fprintf(out, color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

static void print_verb(const struct cli *cli, const struct cli_verb *verb,
                       FILE *out)
{
    fprintf(out, "Usage: moontide %s%s%s%s\n\n", verb->name,
            verb->options->name != NULL ? " [OPTIONS]" : "",
            verb->arguments[0] != '\0' ? " " : "", verb->arguments);
    fprintf(out, "%s: %s.\n", verb->name, verb->doc);
    if (verb->details != NULL) {
        fputc('\n', out);
        print_wrapped(out, verb->details, 0, 0);
    }
    if (verb->options->name != NULL) {
        print_heading(cli, out, "Options");
        print_options(out, verb->options);
    }
}

static void print_program(const struct cli *cli, FILE *out)
{
    fputs("Usage: moontide [OPTIONS] VERB [ARGUMENTS]\n\n"
          "A host for events: projections written in Lua, applied inside the "
          "database\ntransaction.\n",
          out);
    print_heading(cli, out, "Verbs");
    for (const struct cli_verb *verb = cli_verbs; verb->name != NULL; verb++) {
        char left[80];

        if ((verb->flags & CLI_HIDDEN) != 0)
            continue;
        snprintf(left, sizeof(left), "%s%s%s", verb->name,
                 verb->arguments[0] != '\0' ? " " : "", verb->arguments);
        print_entry(out, left, verb->doc);
    }
}

void help_print(const struct cli *cli, const struct cli_verb *verb, FILE *out)
{
    if (verb != NULL)
        print_verb(cli, verb, out);
    else
        print_program(cli, out);
    print_heading(cli, out, "Global options");
    print_options(out, cli_global_options);
    print_heading(cli, out, "Exit codes");
    fputs("  0 done, 1 failed, 3 refused, 64 bad command line, 69 database "
          "unreachable,\n  75 try again later, 78 configuration or script "
          "error\n",
          out);
    if (verb == NULL)
        fputs("\nmoontide help VERB says more about a verb.\n", out);
}

void help_version(const struct cli *cli)
{
    if (cli->json)
        fprintf(cli->out, "{\"version\":\"%s\"}\n", MOONTIDE_VERSION);
    else
        fprintf(cli->out, "moontide %s\n", MOONTIDE_VERSION);
}

enum status cli_help(struct cli *cli, struct diag *diag)
{
    const struct cli_verb *verb = NULL;

    if (cli->nargs > 0) {
        enum status status = parse_verb(cli->args[0], &verb, diag);

        if (status != STATUS_OK)
            return status;
    }
    help_print(cli, verb, cli->out);
    return STATUS_OK;
}
