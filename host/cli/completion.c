#include "cli/cli.h"

/* Words that may follow as first argument; file names otherwise. */
static bool completes_words(const struct cli_verb *verb)
{
    return verb->words != NULL;
}

static bool shown(const struct cli_verb *verb)
{
    return (verb->flags & CLI_HIDDEN) == 0;
}

static void print_verb_names(FILE *out)
{
    for (const struct cli_verb *verb = cli_verbs; verb->name != NULL; verb++) {
        if (shown(verb))
            fprintf(out, " %s", verb->name);
    }
}

static void print_option_names(FILE *out, const struct cli_option *options)
{
    for (; options->name != NULL; options++)
        fprintf(out, " --%s", options->name);
}

static void print_choices(FILE *out, const struct cli_option *option)
{
    for (size_t i = 0; option->choices[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
}

/* --- bash ---------------------------------------------------------------- */

/* The words that an option takes, after the option. */
static void print_bash_choices(FILE *out)
{
    for (const struct cli_verb *verb = cli_verbs; verb->name != NULL; verb++)
        for (const struct cli_option *o = verb->options; o->name != NULL; o++) {
            if (o->choices == NULL)
                continue;
            fprintf(out, "    %s:--%s) COMPREPLY=($(compgen -W '", verb->name,
                    o->name);
            print_choices(out, o);
            fputs("' -- \"$cur\")); return ;;\n", out);
        }
}

static void print_bash(FILE *out)
{
    fputs("# bash completion for moontide: source it, or put it where your\n"
          "# system keeps completions.\n"
          "_moontide() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} verb= words= i\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "        --config|--database) ((i++)) ;;\n"
          "        -*) ;;\n"
          "        *) verb=${COMP_WORDS[i]}; break ;;\n"
          "        esac\n"
          "    done\n"
          "    case $verb:${COMP_WORDS[COMP_CWORD-1]} in\n",
          out);
    print_bash_choices(out);
    fputs("    esac\n"
          "    case $verb in\n"
          "    '') words='",
          out);
    print_verb_names(out);
    fputs("' ;;\n    help) words='", out);
    print_verb_names(out);
    fputs("' ;;\n", out);
    for (const struct cli_verb *verb = cli_verbs; verb->name != NULL; verb++) {
        if (!shown(verb) || strcmp(verb->name, "help") == 0)
            continue;
        fprintf(out, "    %s) words='", verb->name);
        for (size_t i = 0; completes_words(verb) && verb->words[i] != NULL; i++)
            fprintf(out, " %s", verb->words[i]);
        print_option_names(out, verb->options);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n    words+='", out);
    print_option_names(out, cli_global_options);
    fputs("'\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "}\n"
          "complete -o bashdefault -o default -F _moontide moontide\n",
          out);
}

/* --- zsh ----------------------------------------------------------------- */

/* Text inside '...' of a specification: quotes, colons and brackets mean
 * something there. */
static void print_zsh_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void print_zsh_options(FILE *out, const struct cli_option *options,
                              const char *indent)
{
    for (; options->name != NULL; options++) {
        fprintf(out, "%s'%s--%s%s[", indent, options->repeated ? "*" : "",
                options->name,
                options->argument != NULL && !options->optional ? "=" : "");
        print_zsh_text(out, options->doc);
        fputc(']', out);
        if (options->argument != NULL) {
            fputs(options->optional ? "::" : ":", out);
            print_zsh_text(out, options->argument);
            fprintf(out, ":%s",
                    strcmp(options->argument, "FILE") == 0 ? "_files" : "");
            if (options->choices != NULL) {
                fputc('(', out);
                print_choices(out, options);
                fputc(')', out);
            }
        }
        fputs("' \\\n", out);
    }
}

static void print_zsh(FILE *out)
{
    fputs("#compdef moontide\n"
          "# zsh completion for moontide: put it as _moontide into a folder "
          "of $fpath.\n"
          "_moontide() {\n"
          "    local curcontext=$curcontext state line\n"
          "    local -a verbs\n"
          "    verbs=(\n",
          out);
    for (const struct cli_verb *verb = cli_verbs; verb->name != NULL; verb++) {
        if (!shown(verb))
            continue;
        fprintf(out, "        '%s:", verb->name);
        print_zsh_text(out, verb->doc);
        fputs("'\n", out);
    }
    fputs("    )\n    _arguments -C \\\n", out);
    print_zsh_options(out, cli_global_options, "        ");
    fputs("        '1:verb:->verb' '*::argument:->argument'\n"
          "    case $state in\n"
          "    verb) _describe verb verbs ;;\n"
          "    argument)\n"
          "        case $words[1] in\n"
          "        help) _describe verb verbs ;;\n",
          out);
    for (const struct cli_verb *verb = cli_verbs; verb->name != NULL; verb++) {
        if (!shown(verb) || strcmp(verb->name, "help") == 0)
            continue;
        fprintf(out, "        %s) _arguments \\\n", verb->name);
        print_zsh_options(out, verb->options, "            ");
        print_zsh_options(out, cli_global_options, "            ");
        if (completes_words(verb)) {
            fputs("            '1:word:(", out);
            for (size_t i = 0; verb->words[i] != NULL; i++)
                fprintf(out, "%s%s", i > 0 ? " " : "", verb->words[i]);
            fputs(")' ;;\n", out);
        } else {
            fputs("            '*:argument:_files' ;;\n", out);
        }
    }
    fputs("        esac ;;\n"
          "    esac\n"
          "}\n"
          "_moontide \"$@\"\n",
          out);
}

/* --- fish ---------------------------------------------------------------- */

static void print_fish_text(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void print_fish_options(FILE *out, const struct cli_option *options,
                               const char *verb)
{
    for (; options->name != NULL; options++) {
        fputs("complete -c moontide", out);
        if (verb != NULL)
            fprintf(out, " -n '__fish_seen_subcommand_from %s'", verb);
        fprintf(out, " -l %s", options->name);
        if (options->letter != 0)
            fprintf(out, " -s %c", options->letter);
        if (options->argument != NULL && !options->optional)
            fputs(" -r", out);
        if (options->choices != NULL) {
            fputs(" -f -a '", out);
            print_choices(out, options);
            fputc('\'', out);
        }
        fputs(" -d ", out);
        print_fish_text(out, options->doc);
        fputc('\n', out);
    }
}

static void print_fish(FILE *out)
{
    fputs("# fish completion for moontide: put it as moontide.fish into\n"
          "# the folder completions of your fish configuration.\n",
          out);
    print_fish_options(out, cli_global_options, NULL);
    for (const struct cli_verb *verb = cli_verbs; verb->name != NULL; verb++) {
        if (!shown(verb))
            continue;
        fprintf(out,
                "complete -c moontide -f -n __fish_use_subcommand -a %s -d ",
                verb->name);
        print_fish_text(out, verb->doc);
        fputc('\n', out);
        print_fish_options(out, verb->options, verb->name);
        for (size_t i = 0; completes_words(verb) && verb->words[i] != NULL; i++)
            fprintf(out,
                    "complete -c moontide -f -n '__fish_seen_subcommand_from "
                    "%s' -a %s\n",
                    verb->name, verb->words[i]);
    }
    fputs("complete -c moontide -f -n '__fish_seen_subcommand_from help' -a '",
          out);
    print_verb_names(out);
    fputs("'\n", out);
}

enum status cli_completion(struct cli *cli, struct diag *diag)
{
    const char *shell = cli->args[0];

    (void)diag; /* the table has checked the word */
    if (strcmp(shell, "bash") == 0)
        print_bash(cli->out);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(cli->out);
    else
        print_fish(cli->out);
    return STATUS_OK;
}
