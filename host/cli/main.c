/*
 * Main -- one call of the program: parse, run the verb, print what went wrong,
 * turn the status into an exit code.
 */
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "run/application.h"

#include "base/json_member.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * A standard stream that is closed must not become the number of a database
 * file. Opened the wrong way round it stays an error to use it.
 */
static void hold_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
}

static bool color_wanted(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (no_color != NULL && no_color[0] != '\0')
        return false;
    if (term == NULL || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fd) == 1;
}

/* A message may end with statements to run; their lines stay lines. */
static void write_message(struct buffer *out, const char *message)
{
    for (;;) {
        size_t len = strcspn(message, "\n");

        output_safe(out, (struct text){message, len});
        buffer_append_char(out, '\n');
        message += len;
        message += strspn(message, "\n");
        if (*message == '\0')
            return;
    }
}

static void print_error(const struct cli *cli, const struct diag *diag)
{
    struct buffer line = BUFFER_EMPTY;

    buffer_append_string(&line, cli->color_err ? "\033[1;31mmoontide:\033[0m "
                                               : "moontide: ");
    write_message(&line, diag->message);
    if (cli->json) {
        bool first = true;

        buffer_append_string(&line, "{\"error\":{");
        json_member_string(&line, &first, "status", status_word(diag->status));
        json_member_string(&line, &first, "message", diag->message);
        buffer_append_string(&line, "}}\n");
    }
    fwrite(line.data, 1, line.len, cli->err);
    fflush(cli->err);
    buffer_free(&line);
}

int cli_exit_code(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return 0;
    case STATUS_REFUSED:
        return 3;
    case STATUS_USAGE:
        return 64;
    case STATUS_UNAVAILABLE:
    case STATUS_LOST:
        return 69;
    case STATUS_BUSY:
    case STATUS_CONFLICT:
        return 75;
    case STATUS_CONFIG:
        return 78;
    default:
        return 1;
    }
}

enum status cli_flush(struct cli *cli, struct diag *diag)
{
    errno = 0;
    if (fflush(cli->out) != 0 || ferror(cli->out) != 0)
        return diag_set(diag, STATUS_FAILED,
                        "cannot write to standard output: %s",
                        errno != 0 ? strerror(errno) : "write error");
    return STATUS_OK;
}

enum status cli_settings(struct cli *cli, const struct settings **settings,
                         struct diag *diag)
{
    if (!cli->settings_loaded) {
        struct settings_source source = {
            .config_path = cli->config,
            .database = cli->database,
        };
        enum status status = settings_load(&source, &cli->settings, diag);

        if (status != STATUS_OK)
            return status;
        cli->settings_loaded = true;
    }
    *settings = &cli->settings;
    return STATUS_OK;
}

enum status cli_open(struct cli *cli, unsigned needs, struct application *app,
                     struct diag *diag)
{
    const struct settings *settings;
    enum status status = cli_settings(cli, &settings, diag);

    if (status != STATUS_OK)
        return status;
    return application_open(settings, needs, app, diag);
}

/* An error in the command line may stand before options that come later and
 * say how to show it. */
static bool is_asked(const char *option, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], option) == 0)
            return true;
    }
    return false;
}

static enum status run(struct cli *cli, int argc, char **argv,
                       struct diag *diag)
{
    enum parse_outcome outcome = PARSE_NOTHING;
    enum status status = parse_command_line(argc, argv, cli, &outcome, diag);

    if (status != STATUS_OK) {
        cli->json = cli->json || is_asked("--json", argc, argv);
        cli->color_err = cli->color_err && !is_asked("--no-color", argc, argv);
        return status;
    }
    switch (outcome) {
    case PARSE_NOTHING:
        help_print(cli, NULL, cli->err);
        cli->exit_code = cli_exit_code(STATUS_USAGE);
        return STATUS_OK;
    case PARSE_HELP:
        help_print(cli, cli->verb, cli->out);
        return STATUS_OK;
    case PARSE_VERSION:
        help_version(cli);
        return STATUS_OK;
    case PARSE_RUN:
        break;
    }
    return cli->verb->run(cli, diag);
}

int main(int argc, char **argv)
{
    struct cli cli = {.out = stdout, .err = stderr, .exit_code = -1};
    struct diag diag = {.status = STATUS_OK};
    struct diag flush_diag = {.status = STATUS_OK};
    enum status status;
    int code;

    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error */
    cli.color_out = color_wanted(STDOUT_FILENO);
    cli.color_err = color_wanted(STDERR_FILENO);
    cli.terminal_out = isatty(STDOUT_FILENO) == 1;
    cli.terminal_err = isatty(STDERR_FILENO) == 1;

    status = run(&cli, argc, argv, &diag);
    if (cli_flush(&cli, &flush_diag) != STATUS_OK && status == STATUS_OK) {
        status = flush_diag.status;
        diag = flush_diag;
        cli.exit_code = -1;
    }
    code = cli_exit_code(status);
    if (cli.exit_code >= 0)
        code = cli.exit_code;
    else if (status != STATUS_OK)
        print_error(&cli, &diag);

    if (cli.settings_loaded)
        settings_free(&cli.settings);
    parse_free(&cli);
    return code;
}
