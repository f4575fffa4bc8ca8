#include "cli/parse.h"

#include "base/memory.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#define OPTIONS_MAX 32 /* global options and those of one verb */
#define VERBS_MAX   64

struct cli_given {
    const char *name;
    const char *value; /* NULL for a flag */
};

/* The two option lists of a call as getopt_long wants them. */
struct option_set {
    const struct cli_option *known[OPTIONS_MAX];
    struct option longs[OPTIONS_MAX + 1];
    char shorts[2 * OPTIONS_MAX + 4];
    int count;
};

static void option_set_add(struct option_set *set,
                           const struct cli_option *options)
{
    for (; options->name != NULL; options++) {
        char *end = set->shorts + strlen(set->shorts);
        int i = set->count++;

        set->known[i] = options;
        set->longs[i] = (struct option){
            .name = options->name,
            .has_arg = options->argument == NULL ? no_argument
                       : options->optional       ? optional_argument
                                                 : required_argument,
            .val = 256 + i,
        };
        if (options->letter != 0) {
            *end++ = options->letter;
            if (options->argument != NULL)
                *end++ = ':';
            *end = '\0';
        }
    }
}

static const struct cli_option *option_set_find(const struct option_set *set,
                                                int code)
{
    if (code >= 256)
        return set->known[code - 256];
    for (int i = 0; i < set->count; i++) {
        if (set->known[i]->letter == code)
            return set->known[i];
    }
    return NULL;
}

static enum status unknown_option(const struct option_set *set,
                                  const struct cli_verb *verb,
                                  const char *given, struct diag *diag)
{
    const char *names[OPTIONS_MAX + 1];
    const char *near;
    char word[64];
    size_t len;

    for (int i = 0; i < set->count; i++)
        names[i] = set->known[i]->name;
    names[set->count] = NULL;

    len = strcspn(given, "=");
    if (strncmp(given, "--", 2) == 0 && len - 2 < sizeof(word)) {
        memcpy(word, given + 2, len - 2);
        word[len - 2] = '\0';
        near = text_nearest(word, names);
        if (near != NULL)
            return diag_set(diag, STATUS_USAGE,
                            "unknown option %.*s; did you mean --%s?", (int)len,
                            given, near);
    }
    return diag_set(
        diag, STATUS_USAGE, "unknown option %.*s; see moontide %s%s",
        (int)(len > 200 ? 200 : len), given, verb != NULL ? verb->name : "",
        verb != NULL ? " --help" : "--help");
}

static enum status bad_option(const struct option_set *set,
                              const struct cli_verb *verb, int code,
                              const char *given, struct diag *diag)
{
    const struct cli_option *option;
    char letter[3] = {'-', (char)optopt, '\0'};

    if (code == ':') {
        option = option_set_find(set, optopt);
        if (option != NULL)
            return diag_set(diag, STATUS_USAGE, "--%s needs a value: %s",
                            option->name, option->argument);
    }
    /* optopt is 0 or a letter for what is unknown, and the option's own code
     * for a flag that was given a value */
    option = optopt >= 256 ? option_set_find(set, optopt) : NULL;
    if (option != NULL)
        return diag_set(diag, STATUS_USAGE, "--%s takes no value",
                        option->name);
    if (optopt != 0)
        return unknown_option(set, verb, letter, diag);
    return unknown_option(set, verb, given, diag);
}

static void keep_option(struct cli *cli, const struct cli_option *option,
                        const char *value)
{
    cli->given = mem_grow(cli->given, cli->ngiven + 1, sizeof(*cli->given));
    cli->given[cli->ngiven++] = (struct cli_given){option->name, value};
}

static void keep_argument(struct cli *cli, char *argument)
{
    cli->args = mem_grow(cli->args, (size_t)cli->nargs + 2, sizeof(*cli->args));
    cli->args[cli->nargs++] = argument;
    cli->args[cli->nargs] = NULL;
}

/* The word behind an option whose argument may be left out belongs to it when
 * it starts as a number; NULL: it does not. */
static char *take_number(int argc, char **argv)
{
    if (optind >= argc || argv[optind][0] < '0' || argv[optind][0] > '9')
        return NULL;
    return argv[optind++];
}

/* Reads options until `stop_at_word` meets a word (then optind is its index)
 * or argv ends. */
static enum status read_options(struct cli *cli, const struct option_set *set,
                                int argc, char **argv, bool stop_at_word,
                                struct diag *diag)
{
    const struct cli_option *option;
    int code;
    int at;

    opterr = 0;
    for (;;) {
        at = optind > 0 ? optind : 1;
        code = getopt_long(argc, argv, set->shorts, set->longs, NULL);
        if (code == -1)
            break;
        if (code == '?' || code == ':')
            return bad_option(set, cli->verb, code,
                              argv[at < argc ? at : argc - 1], diag);
        if (code == 1) { /* a word among the options */
            keep_argument(cli, optarg);
            continue;
        }
        option = option_set_find(set, code);
        if (option->optional && optarg == NULL)
            optarg = take_number(argc, argv);
        keep_option(cli, option, optarg);
    }
    if (!stop_at_word) {
        for (; optind < argc; optind++)
            keep_argument(cli, argv[optind]);
    }
    return STATUS_OK;
}

enum status parse_verb(const char *name, const struct cli_verb **verb,
                       struct diag *diag)
{
    const char *names[VERBS_MAX + 1];
    const char *near;
    size_t count = 0;

    for (const struct cli_verb *v = cli_verbs; v->name != NULL; v++) {
        if (strcmp(v->name, name) == 0) {
            *verb = v;
            return STATUS_OK;
        }
        if ((v->flags & CLI_HIDDEN) == 0)
            names[count++] = v->name;
    }
    names[count] = NULL;
    near = text_nearest(name, names);
    if (near != NULL)
        return diag_set(diag, STATUS_USAGE,
                        "there is no verb '%.100s'; did you mean '%s'?", name,
                        near);
    return diag_set(diag, STATUS_USAGE,
                    "there is no verb '%.100s'; moontide --help lists them",
                    name);
}

static enum status check_once(const struct cli *cli,
                              const struct option_set *set, struct diag *diag)
{
    for (int i = 0; i < set->count; i++) {
        const struct cli_option *option = set->known[i];

        if (!option->repeated && option->argument != NULL &&
            cli_value_at(cli, option->name, 1) != NULL)
            return diag_set(diag, STATUS_USAGE,
                            "--%s is given twice; give it once", option->name);
    }
    return STATUS_OK;
}

static enum status check_choice(const struct cli_option *option,
                                const char *value, struct diag *diag)
{
    struct buffer list = BUFFER_EMPTY;
    enum status status;

    for (size_t i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], value) == 0) {
            buffer_free(&list);
            return STATUS_OK;
        }
        buffer_printf(&list, "%s%s", i > 0 ? ", " : "", option->choices[i]);
    }
    status = diag_set(diag, STATUS_USAGE, "--%s takes one of %s, not '%.100s'",
                      option->name, list.data, value);
    buffer_free(&list);
    return status;
}

static enum status check_choices(const struct cli *cli,
                                 const struct option_set *set,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;

    for (int i = 0; status == STATUS_OK && i < set->count; i++) {
        const struct cli_option *option = set->known[i];
        const char *value;

        for (size_t n = 0; option->choices != NULL && status == STATUS_OK &&
                           (value = cli_value_at(cli, option->name, n)) != NULL;
             n++)
            status = check_choice(option, value, diag);
    }
    return status;
}

/* What is looked up in a database is text; paths and URLs are any bytes. */
static enum status check_encoding(const struct cli *cli, struct diag *diag)
{
    for (size_t i = 0; i < cli->ngiven; i++) {
        const struct cli_given *given = &cli->given[i];

        if (strcmp(given->name, "config") != 0 &&
            strcmp(given->name, "database") != 0 &&
            !text_utf8_valid(text_of(given->value)))
            return diag_set(diag, STATUS_USAGE,
                            "--%s is not valid UTF-8: '%.100s'", given->name,
                            given->value);
    }
    for (int i = 0; (cli->verb->flags & CLI_PATHS) == 0 && i < cli->nargs; i++)
        if (!text_utf8_valid(text_of(cli->args[i])))
            return diag_set(diag, STATUS_USAGE,
                            "an argument of %s is not valid UTF-8: '%.100s'",
                            cli->verb->name, cli->args[i]);
    return STATUS_OK;
}

static enum status check_arguments(const struct cli *cli, struct diag *diag)
{
    const struct cli_verb *verb = cli->verb;

    if (cli->nargs < verb->min_args)
        return diag_set(diag, STATUS_USAGE,
                        "%s needs more arguments: moontide %s %s", verb->name,
                        verb->name, verb->arguments);
    if (verb->max_args != CLI_MANY && cli->nargs > verb->max_args)
        return diag_set(diag, STATUS_USAGE,
                        "%s does not take the argument '%.200s': moontide "
                        "%s%s%s",
                        verb->name, cli->args[verb->max_args], verb->name,
                        verb->arguments[0] != '\0' ? " " : "", verb->arguments);
    if (verb->words != NULL && cli->nargs > 0) {
        const char *near;

        for (size_t i = 0; verb->words[i] != NULL; i++) {
            if (strcmp(verb->words[i], cli->args[0]) == 0)
                return STATUS_OK;
        }
        near = text_nearest(cli->args[0], verb->words);
        if (near != NULL)
            return diag_set(diag, STATUS_USAGE,
                            "%s does not know '%.200s'; did you mean '%s'?",
                            verb->name, cli->args[0], near);
        return diag_set(diag, STATUS_USAGE,
                        "%s does not know '%.200s': moontide %s %s", verb->name,
                        cli->args[0], verb->name, verb->arguments);
    }
    return STATUS_OK;
}

/* What a verb passes on keeps its order and its dashes; only a leading --help
 * is ours, and a leading -- that protects the rest is dropped. */
static bool pass_through(struct cli *cli, int argc, char **argv, int from)
{
    if (from < argc &&
        (strcmp(argv[from], "--help") == 0 || strcmp(argv[from], "-h") == 0))
        return true;
    if (from < argc && strcmp(argv[from], "--") == 0)
        from++;
    for (; from < argc; from++)
        keep_argument(cli, argv[from]);
    return false;
}

static void apply_globals(struct cli *cli)
{
    cli->json = cli_given(cli, "json");
    cli->quiet = cli_given(cli, "quiet");
    cli->config = cli_value(cli, "config");
    cli->database = cli_value(cli, "database");
    if (cli_given(cli, "no-color")) {
        cli->color_out = false;
        cli->color_err = false;
    }
}

enum status parse_command_line(int argc, char **argv, struct cli *cli,
                               enum parse_outcome *outcome, struct diag *diag)
{
    struct option_set globals = {.shorts = "+:"};
    struct option_set all = {.shorts = "-:"};
    enum status status;
    int verb_at;

    option_set_add(&globals, cli_global_options);
    optind = 0; /* tells getopt_long to start afresh */
    status = read_options(cli, &globals, argc, argv, true, diag);
    apply_globals(cli);
    if (status != STATUS_OK)
        return status;
    verb_at = optind;
    if (verb_at < argc) {
        if (cli_given(cli, "version")) {
            *outcome = PARSE_VERSION;
            return STATUS_OK;
        }
        status = parse_verb(argv[verb_at], &cli->verb, diag);
        if (status != STATUS_OK)
            return status;
        if ((cli->verb->flags & CLI_PASS_THROUGH) != 0) {
            *outcome = pass_through(cli, argc, argv, verb_at + 1) ||
                               cli_given(cli, "help")
                           ? PARSE_HELP
                           : PARSE_RUN;
            if (*outcome == PARSE_HELP)
                return STATUS_OK;
            return check_arguments(cli, diag);
        }
        option_set_add(&all, cli_global_options);
        option_set_add(&all, cli->verb->options);
        optind = 0;
        status = read_options(cli, &all, argc - verb_at, argv + verb_at, false,
                              diag);
        apply_globals(cli);
        if (status != STATUS_OK)
            return status;
    }
    if (cli_given(cli, "help"))
        *outcome = PARSE_HELP;
    else if (cli_given(cli, "version"))
        *outcome = PARSE_VERSION;
    else if (cli->verb == NULL)
        *outcome = PARSE_NOTHING;
    else
        *outcome = PARSE_RUN;
    if (*outcome != PARSE_RUN)
        return STATUS_OK;
    status = check_encoding(cli, diag);
    if (status == STATUS_OK)
        status = check_once(cli, &all, diag);
    if (status == STATUS_OK)
        status = check_choices(cli, &all, diag);
    if (status != STATUS_OK)
        return status;
    return check_arguments(cli, diag);
}

void parse_free(struct cli *cli)
{
    mem_free(cli->given);
    mem_free(cli->args);
    cli->given = NULL;
    cli->args = NULL;
    cli->ngiven = 0;
    cli->nargs = 0;
}

const char *cli_value_at(const struct cli *cli, const char *name, size_t n)
{
    for (size_t i = 0; i < cli->ngiven; i++) {
        if (strcmp(cli->given[i].name, name) == 0 && n-- == 0)
            return cli->given[i].value;
    }
    return NULL;
}

const char *cli_value(const struct cli *cli, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < cli->ngiven; i++) {
        if (strcmp(cli->given[i].name, name) == 0)
            value = cli->given[i].value;
    }
    return value;
}

bool cli_given(const struct cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->ngiven; i++) {
        if (strcmp(cli->given[i].name, name) == 0)
            return true;
    }
    return false;
}

enum status cli_integer(const struct cli *cli, const char *name,
                        int64_t fallback, int64_t min, int64_t max,
                        int64_t *value, struct diag *diag)
{
    const char *text = cli_value(cli, name);
    char *end;
    long long number;

    *value = fallback;
    if (text == NULL)
        return STATUS_OK;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (text[0] == '\0' || strchr(" \t\n\v\f\r", text[0]) != NULL ||
        *end != '\0' || errno != 0 || number < min || number > max)
        return diag_set(diag, STATUS_USAGE,
                        "--%s takes a whole number from %lld to %lld, not "
                        "'%.100s'",
                        name, (long long)min, (long long)max, text);
    *value = number;
    return STATUS_OK;
}
