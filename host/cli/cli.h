/*
 * Command line -- what every verb gets and may use. One constant table of
 * verbs (cli/verbs.c) feeds parsing, help, completion and error messages.
 *
 * A verb is `enum status cli_NAME(struct cli *cli, struct diag *diag)` in
 * cli/NAME.c. It writes results to cli->out and talk (progress, summaries) to
 * cli->err unless cli->quiet, returns a status, and prints no error itself:
 * cli/main.c prints `diag` and turns the status into the exit code. Nothing
 * above this folder exists.
 */
#ifndef HOST_CLI_CLI_H
#define HOST_CLI_CLI_H

#include "base/buffer.h"
#include "base/status.h"
#include "run/settings.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli;
struct application; /* run/application.h */

/** One option of a verb or a global one. A list ends with a NULL name. */
struct cli_option {
    const char *name;     /* long name without dashes */
    const char *argument; /* NULL: a flag; else its word in the help, "N" */
    const char *doc;      /* one line */
    char letter;          /* -h, or 0 */
    bool optional;        /* the argument may be left out; it is a number */
    bool repeated;        /* may be given several times */
    const char *const *choices; /* for checks and completion, or NULL */
};

enum cli_verb_flags {
    CLI_HIDDEN = 1 << 0,       /* not in help and completion */
    CLI_PASS_THROUGH = 1 << 1, /* everything after the verb is positional */
    CLI_PATHS = 1 << 2,        /* positional arguments are paths, any bytes */
};

#define CLI_MANY (-1) /* any number of positional arguments */

struct cli_verb {
    const char *name;
    const char *arguments; /* "PROJECTION [KEY]" for the help, "" for none */
    const char *doc;       /* one line */
    const char *details;   /* more for `help VERB`, or NULL */
    const struct cli_option *options; /* never NULL */
    int min_args;
    int max_args; /* CLI_MANY: no limit */
    unsigned flags;
    const char *const *words; /* first argument must be one of, or NULL */
    enum status (*run)(struct cli *cli, struct diag *diag);
};

/** cli/verbs.c; both end with a NULL name. */
extern const struct cli_verb cli_verbs[];
extern const struct cli_option cli_global_options[];

struct cli_given; /* one option that was given: cli/parse.c */

struct cli {
    const struct cli_verb *verb;
    FILE *out; /* results */
    FILE *err; /* talk and errors */
    bool json;
    bool quiet;     /* no progress, no summaries; results and errors only */
    bool color_out; /* colours allowed on out */
    bool color_err;
    bool terminal_out;    /* out is a terminal: it may be written over */
    bool terminal_err;    /* err is a terminal: progress lines make sense */
    const char *config;   /* --config, or NULL */
    const char *database; /* --database, or NULL */
    char **args;          /* positional arguments after the verb, NULL-ended */
    int nargs;
    /* Set by a verb whose exit code is not the one of its status (test); -1
     * otherwise. Then nothing is printed for the status. */
    int exit_code;
    /* below: use the functions */
    struct cli_given *given;
    size_t ngiven;
    struct settings settings;
    bool settings_loaded;
};

/** Value of an option, the last one when given twice; NULL: not given. */
const char *cli_value(const struct cli *cli, const char *name);
/** The `n`th value (from 0) of a repeated option, NULL after the last. */
const char *cli_value_at(const struct cli *cli, const char *name, size_t n);
/** Whether a flag (or an option with a value) was given. */
bool cli_given(const struct cli *cli, const char *name);
/** Integer value; `fallback` when not given. USAGE when it is no integer or
 * lies outside min..max. */
enum status cli_integer(const struct cli *cli, const char *name,
                        int64_t fallback, int64_t min, int64_t max,
                        int64_t *value, struct diag *diag) MUST_CHECK;

/** Loads the configuration on the first call; owned by `cli`. */
enum status cli_settings(struct cli *cli, const struct settings **settings,
                         struct diag *diag) MUST_CHECK;
/** Settings, then application_open with enum application_need bits. The verb
 * calls application_close when this returns OK. */
enum status cli_open(struct cli *cli, unsigned needs, struct application *app,
                     struct diag *diag) MUST_CHECK;

/** Exit code of a status: 0, 1, 3, 64, 69, 75 or 78 (design 8). */
int cli_exit_code(enum status status);

/** Flushes `out`: FAILED when anything written to it was lost (full disk,
 * closed pipe). Verbs that stream call it now and then; main.c always does. */
enum status cli_flush(struct cli *cli, struct diag *diag) MUST_CHECK;

/* --- verbs --------------------------------------------------------------- */

enum status cli_new(struct cli *cli, struct diag *diag);
enum status cli_check(struct cli *cli, struct diag *diag);
enum status cli_schema(struct cli *cli, struct diag *diag);
enum status cli_run(struct cli *cli, struct diag *diag);
enum status cli_append(struct cli *cli, struct diag *diag);
enum status cli_emit(struct cli *cli, struct diag *diag);
enum status cli_command(struct cli *cli, struct diag *diag);
enum status cli_events(struct cli *cli, struct diag *diag);
enum status cli_read(struct cli *cli, struct diag *diag);
enum status cli_status(struct cli *cli, struct diag *diag);
enum status cli_pause(struct cli *cli, struct diag *diag);
enum status cli_rebuild(struct cli *cli, struct diag *diag);
enum status cli_resume(struct cli *cli, struct diag *diag);
enum status cli_dead_letters(struct cli *cli, struct diag *diag);
enum status cli_outbox(struct cli *cli, struct diag *diag);
enum status cli_topics(struct cli *cli, struct diag *diag);
enum status cli_sagas(struct cli *cli, struct diag *diag);
enum status cli_deadlines(struct cli *cli, struct diag *diag);
enum status cli_worker(struct cli *cli, struct diag *diag);
enum status cli_load(struct cli *cli, struct diag *diag);
enum status cli_reload(struct cli *cli, struct diag *diag);
enum status cli_unsubscribe(struct cli *cli, struct diag *diag);
enum status cli_test(struct cli *cli, struct diag *diag);
enum status cli_lua(struct cli *cli, struct diag *diag);
enum status cli_console(struct cli *cli, struct diag *diag);
enum status cli_completion(struct cli *cli, struct diag *diag);
enum status cli_help(struct cli *cli, struct diag *diag);

#endif
