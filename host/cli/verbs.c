#include "cli/cli.h"

const struct cli_option cli_global_options[] = {
    {.name = "config",
     .argument = "FILE",
     .doc = "configuration (default moontide.conf.lua)"},
    {.name = "database",
     .argument = "URL",
     .doc = "database, before DATABASE_URL and the file"},
    {.name = "json", .doc = "results as JSON"},
    {.name = "quiet",
     .letter = 'q',
     .doc = "no progress and no summaries; of check only the warnings"},
    {.name = "no-color", .doc = "no colours, like NO_COLOR=1"},
    {.name = "help", .letter = 'h', .doc = "help for the program or a verb"},
    {.name = "version", .letter = 'V', .doc = "print the version"},
    {.name = NULL},
};

static const struct cli_option no_options[] = {{.name = NULL}};

static const char *const schema_words[] = {"print", "names", "upgrade", NULL};

static const struct cli_option schema_options[] = {
    {.name = "dialect",
     .argument = "D",
     .doc = "print for this dialect instead of the database's"},
    {.name = "raw", .doc = "print with placeholders instead of table names"},
    {.name = NULL},
};

static const struct cli_option run_options[] = {
    {.name = "until-idle", .doc = "process what is there, then exit"},
    {.name = "workers",
     .argument = "N",
     .doc = "worker processes; 0: none, all in this process"},
    {.name = NULL},
};

static const struct cli_option worker_options[] = {
    {.name = "instance", .argument = "ID", .doc = "the instance that it is"},
    {.name = "supervisor", .argument = "PID", .doc = "who has started it"},
    {.name = "scripts", .argument = "PLACE", .doc = "what it is to load"},
    {.name = "replaces", .doc = "it does not begin a run of the host"},
    {.name = NULL},
};

static const struct cli_option load_options[] = {
    {.name = "supervisor", .argument = "PID", .doc = "who has started it"},
    {.name = NULL},
};

static const struct cli_option reload_options[] = {
    {.name = "accept",
     .doc = "also when it changes declarations of consumers that run: they go "
            "on with the read models that they have"},
    {.name = NULL},
};

static const struct cli_option append_options[] = {
    {.name = "batch",
     .argument = "N",
     .doc = "events per transaction (default: batch of the configuration, up "
            "to 500)"},
    {.name = NULL},
};

static const struct cli_option command_options[] = {
    {.name = "id",
     .argument = "UUID",
     .doc = "the command's own id, under which it is done once"},
    {.name = "metadata",
     .argument = "JSON",
     .doc = "an object that the command and its events get"},
    {.name = NULL},
};

static const struct cli_option events_options[] = {
    {.name = "topic",
     .argument = "T",
     .doc = "topic to read (default event-store)"},
    {.name = "aggregate", .argument = "ID", .doc = "only this aggregate id"},
    {.name = "key",
     .argument = "K",
     .doc = "only this key (event-store: the aggregate id)"},
    {.name = "type",
     .argument = "T",
     .doc = "only events of this type",
     .repeated = true},
    {.name = "after", .argument = "P", .doc = "start after position P"},
    {.name = "limit", .argument = "N", .doc = "at most N events"},
    {.name = "follow", .doc = "wait for more until a signal comes"},
    {.name = "export",
     .doc = "one JSON object per line, as append and emit take it"},
    {.name = NULL},
};

static const struct cli_option read_options[] = {
    {.name = "where",
     .argument = "F=V",
     .doc = "only where field F has the value V; F= and F=null: none",
     .repeated = true},
    {.name = "order",
     .argument = "F",
     .doc = "order by a field or by key; F:desc or -F: falling"},
    {.name = "limit", .argument = "N", .doc = "at most N read models"},
    {.name = "materialize",
     .doc = "compute the read model of KEY from its messages, and compare"},
    {.name = NULL},
};

static const struct cli_option status_options[] = {
    {.name = "watch",
     .argument = "SECONDS",
     .optional = true,
     .doc = "show it again every two seconds, or so many"},
    {.name = NULL},
};

static const struct cli_option resume_options[] = {
    {.name = "past",
     .doc = "delete the messages that halted it, and skip them"},
    {.name = "every-key",
     .doc = "with --past: skip them for every key, not for theirs only"},
    {.name = "accept",
     .doc = "go on with a changed declaration, or behind missing history"},
    {.name = NULL},
};

static const struct cli_option unsubscribe_options[] = {
    {.name = "source",
     .argument = "TOPIC",
     .doc = "only from this topic (default: from all it reads)"},
    {.name = "force", .doc = "also when it is declared and not paused"},
    {.name = NULL},
};

static const struct cli_option rebuild_options[] = {
    {.name = "key",
     .argument = "K",
     .doc = "only the read model of this key, at once"},
    {.name = "cancel",
     .doc = "take the question back, while the progress was not reset"},
    {.name = "restart", .doc = "begin again, also when it replays already"},
    {.name = "wait",
     .doc = "show how the hosts get on, until the replay is over"},
    {.name = NULL},
};

static const char *const sagas_words[] = {"list",    "show",   "retry",
                                          "confirm", "delete", NULL};

static const char *const saga_states[] = {"active", "completed", NULL};

static const struct cli_option sagas_options[] = {
    {.name = "type", .argument = "TYPE", .doc = "only of this saga type"},
    {.name = "state",
     .argument = "S",
     .doc = "only in this state",
     .choices = saga_states},
    {.name = "limit", .argument = "N", .doc = "list at most N (default 100)"},
    {.name = "force", .doc = "delete one that is under way"},
    {.name = NULL},
};

static const char *const deadlines_words[] = {"list",  "show",   "fire",
                                              "retry", "delete", NULL};

static const char *const deadline_statuses[] = {"PENDING", "FAILED",
                                                "DEAD_LETTER", NULL};

static const struct cli_option deadlines_options[] = {
    {.name = "type", .argument = "SAGA", .doc = "only of this saga type"},
    {.name = "saga", .argument = "ID", .doc = "only of the saga with this id"},
    {.name = "name", .argument = "NAME", .doc = "only of this name"},
    {.name = "status",
     .argument = "S",
     .doc = "only in this status",
     .choices = deadline_statuses},
    {.name = "due-before",
     .argument = "TIME",
     .doc = "only due before TIME: RFC 3339, \"now\", or a time from now on "
            "(\"2h\")"},
    {.name = "all", .doc = "all of them; fire, retry and delete want it said"},
    {.name = "limit",
     .argument = "N",
     .doc = "list and show at most N (default 100)"},
    {.name = NULL},
};

static const char *const dead_letters_words[] = {"list", "show", "retry",
                                                 "delete", NULL};

static const char *const undelivered_words[] = {
    "FAILED", "WAITING", "HALTED", "DEAD_LETTER_KEY", "DEAD_LETTER", NULL};

static const struct cli_option dead_letters_options[] = {
    {.name = "consumer", .argument = "NAME", .doc = "only of this consumer"},
    {.name = "type", .argument = "T", .doc = "only messages of this type"},
    {.name = "key", .argument = "K", .doc = "only of this key"},
    {.name = "error",
     .argument = "TEXT",
     .doc = "only where the reason contains this text"},
    {.name = "status",
     .argument = "S",
     .doc = "only in this status; WAITING: what waits behind another one",
     .choices = undelivered_words},
    {.name = "older-than",
     .argument = "AGE",
     .doc = "only recorded longer ago than AGE (\"90s\", \"30m\", \"2h\", "
            "\"7d\")"},
    {.name = "newer-than",
     .argument = "AGE",
     .doc = "only recorded within AGE"},
    {.name = "all", .doc = "all that failed; retry and delete want it said"},
    {.name = "limit",
     .argument = "N",
     .doc = "list and show at most N (default 100)"},
    {.name = NULL},
};

static const char *const outbox_words[] = {"list", "show", "retry", NULL};

static const char *const outbox_statuses[] = {"pending", "processing",
                                              "published", "parked", NULL};

static const struct cli_option outbox_options[] = {
    {.name = "publisher",
     .argument = "NAME",
     .doc = "only messages for this publisher"},
    {.name = "type", .argument = "T", .doc = "only messages of this type"},
    {.name = "status",
     .argument = "S",
     .doc = "only in this status",
     .choices = outbox_statuses},
    {.name = "limit", .argument = "N", .doc = "at most N (default 100)"},
    {.name = "all", .doc = "retry all that are parked"},
    {.name = NULL},
};

static const char *const topics_words[] = {"list", "off", NULL};

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

const struct cli_verb cli_verbs[] = {
    {.name = "new",
     .arguments = "DIR",
     .doc = "write a small application that runs and whose specs pass",
     .options = no_options,
     .min_args = 1,
     .max_args = 1,
     .flags = CLI_PATHS,
     .run = cli_new},
    {.name = "check",
     .arguments = "",
     .doc = "check configuration and scripts, print what they declare",
     .details = "Needs no database. Ends with 78 when something is wrong.",
     .options = no_options,
     .run = cli_check},
    {.name = "schema",
     .arguments = "[print|names|upgrade]",
     .doc = "show the tables' DDL, or bring the database up to date",
     .details = "Without a word it prints. `names` gives what stands for the "
                "placeholders of --raw. `upgrade` applies what is missing and "
                "says what it did; nothing is ever dropped.",
     .options = schema_options,
     .max_args = 1,
     .words = schema_words,
     .run = cli_schema},
    {.name = "run",
     .arguments = "",
     .doc = "run the host",
     .details = "SIGTERM and SIGINT finish the batch in hand and end with 0; "
                "a second signal ends at once.",
     .options = run_options,
     .run = cli_run},
    {.name = "append",
     .arguments = "[FILE]",
     .doc = "append events, one JSON object per line",
     .details =
         "Fields: aggregate_type, aggregate_id, type, payload and, if "
         "wanted, id, metadata, revision, occurred_at, expected. Without FILE "
         "(or with -) it reads standard input. A bad line stops it with its "
         "number; nothing of its batch is kept.",
     .options = append_options,
     .max_args = 1,
     .flags = CLI_PATHS,
     .run = cli_append},
    {.name = "emit",
     .arguments = "[FILE]",
     .doc = "emit domain events into the capture topic",
     .details =
         "Fields: type, payload and, if wanted, key, id, metadata, revision, "
         "occurred_at. Otherwise as append: one JSON object per line, from "
         "FILE or standard input.",
     .options = append_options,
     .max_args = 1,
     .flags = CLI_PATHS,
     .run = cli_emit},
    {.name = "command",
     .arguments = "AGGREGATE ID NAME [JSON]",
     .doc = "let an aggregate decide on a command",
     .details =
         "JSON are the command's arguments ({} when left out, - reads them "
         "from standard input). It is accepted "
         "(0), with the events that it appended, or rejected (3) with a "
         "reason. With --id the same command gives the first outcome again, "
         "however often it is sent.",
     .options = command_options,
     .min_args = 3,
     .max_args = 4,
     .run = cli_command},
    {.name = "events",
     .arguments = "",
     .doc = "show the messages of a topic",
     .details = "Topics: event-store, event-capture for what was emitted, and "
                "read-model:NAME for the read models of a projection.",
     .options = events_options,
     .run = cli_events},
    {.name = "read",
     .arguments = "PROJECTION [KEY]",
     .doc = "read the read models of a projection",
     .details =
         "With KEY it ends with 1 when there is no such read model, and "
         "with --materialize\nwith 3 when the stored one is not what its "
         "messages give.",
     .options = read_options,
     .min_args = 1,
     .max_args = 2,
     .run = cli_read},
    {.name = "status",
     .arguments = "[CONSUMER]",
     .doc = "topics and consumers, what is wrong first",
     .options = status_options,
     .max_args = 1,
     .run = cli_status},
    {.name = "pause",
     .arguments = "CONSUMER",
     .doc = "let a consumer apply nothing until it is resumed",
     .details = "Hosts that run finish the batch in hand. A consumer that is "
                "halted stays halted.",
     .options = no_options,
     .min_args = 1,
     .max_args = 1,
     .run = cli_pause},
    {.name = "resume",
     .arguments = "CONSUMER",
     .doc = "let a paused or halted consumer go on",
     .details = "One that a message halted tries it again with a fresh "
                "budget. What else halted it is refused (3) without --accept.",
     .options = resume_options,
     .min_args = 1,
     .max_args = 1,
     .run = cli_resume},
    {.name = "rebuild",
     .arguments = "CONSUMER",
     .doc = "derive what a projection keeps anew, from the first event",
     .details =
         "In place: its progress is reset, and the hosts replay the history "
         "up to where it stood; what the replay does not make anew is deleted "
         "at its end. An sql_projection needs `reset` for that; of its tables "
         "those that are missing are made, and those that are there stay as "
         "they are. --key does one read model in one transaction, without the "
         "hosts.",
     .options = rebuild_options,
     .min_args = 1,
     .max_args = 1,
     .run = cli_rebuild},
    {.name = "dead-letters",
     .arguments = "[list|show|retry|delete] [ID]",
     .doc = "messages that could not be applied",
     .details = "ID is the position of a message, its id or its row's. Without "
                "ID and --status only messages that failed themselves are "
                "meant. `retry` gives them a fresh budget, `delete` skips "
                "them for good; both need ID, a filter or --all.",
     .options = dead_letters_options,
     .max_args = 2,
     .words = dead_letters_words,
     .run = cli_dead_letters},
    {.name = "outbox",
     .arguments = "[list|show|retry] [ID]",
     .doc = "messages that are staged for publishers",
     .details = "In the order of staging. ID is that of the message, or of its "
                "row; `show` prints it with its payload. `retry` makes parked "
                "messages pending again with a fresh budget; it needs ID, "
                "--publisher, --type or --all. This version stages messages "
                "and sends none.",
     .options = outbox_options,
     .max_args = 2,
     .words = outbox_words,
     .run = cli_outbox},
    {.name = "sagas",
     .arguments = "[list|show|retry|confirm|delete] [TYPE [ID [STEP]]]",
     .doc = "sagas and what they remember",
     .details = "TYPE is the name that the scripts give to a saga, ID the id "
                "of one. `show` prints one with its state, its deadlines and "
                "its steps. `retry` has the command or compensation whose "
                "answer it awaits sent again now, under the same id; `confirm` "
                "takes that of STEP as done. Both are carried out by the host "
                "that holds the saga, or by the next one that starts. "
                "`delete` removes one with its deadlines and steps, not what "
                "it has staged; refused (3) while it is under way, unless "
                "--force. A completed saga stays for sagas.keep.",
     .options = sagas_options,
     .max_args = 4,
     .words = sagas_words,
     .run = cli_sagas},
    {.name = "deadlines",
     .arguments = "[list|show|fire|retry|delete] [SAGA [ID [NAME]]]",
     .doc = "deadlines that sagas have set",
     .details =
         "SAGA is a saga type, or the id of one deadline's row; ID the "
         "id of a saga. `fire` makes deadlines due now that are not yet: the "
         "host that holds the saga fires them, or the next one that "
         "starts. "
         "`retry` gives those that failed, dead letters too, a fresh "
         "budget, `delete` deletes them unfired; all three need a "
         "filter or --all, and take a thousand at a time: one that was "
         "stopped is done again and goes on with the rest.",
     .options = deadlines_options,
     .max_args = 4,
     .words = deadlines_words,
     .run = cli_deadlines},
    {.name = "topics",
     .arguments = "[list|off] [TOPIC]",
     .doc = "topics of read models that are on",
     .details = "TOPIC is read-model:NAME, or the projection's name. `off` "
                "switches it off and deletes its messages, beside hosts that "
                "run; it is refused (3) while a consumer is subscribed to it, "
                "or the scripts would switch it on again.",
     .options = no_options,
     .max_args = 2,
     .words = topics_words,
     .run = cli_topics},
    {.name = "unsubscribe",
     .arguments = "CONSUMER",
     .doc = "remove a consumer's progress from the database",
     .details = "Removes its skips, undelivered messages, checkpoints and its "
                "row, not what it derived. Refused (3) while the scripts "
                "declare it (with --source: for that topic), unless it is "
                "paused.",
     .options = unsubscribe_options,
     .min_args = 1,
     .max_args = 1,
     .run = cli_unsubscribe},
    {.name = "reload",
     .arguments = "",
     .doc = "ask the running host to take the saved scripts, and wait",
     .details =
         "A host takes saved scripts by itself, and on SIGHUP; this waits for "
         "what becomes of it. Every host of the application on this machine is "
         "asked. When they are not good, or would halt a consumer, the ones "
         "before go on, and the exit code is 78 or 3; 69 when no host runs.",
     .options = reload_options,
     .run = cli_reload},
    {.name = "test",
     .arguments = "[ARGS]",
     .doc = "run the specs with busted and the host's Lua runtime",
     .details = "ARGS go to busted as they are; without a path it runs spec/. "
                "Global options stand before `test`. The exit code is "
                "busted's; no test at all is a failure.",
     .options = no_options,
     .max_args = CLI_MANY,
     .flags = CLI_PASS_THROUGH,
     .run = cli_test},
    {.name = "console",
     .arguments = "",
     .doc = "a Lua prompt with the application loaded",
     .options = no_options,
     .run = cli_console},
    {.name = "completion",
     .arguments = "bash|zsh|fish",
     .doc = "print the completion script of a shell",
     .options = no_options,
     .min_args = 1,
     .max_args = 1,
     .words = shells,
     .run = cli_completion},
    {.name = "help",
     .arguments = "[VERB]",
     .doc = "help for the program or a verb",
     .options = no_options,
     .max_args = 1,
     .run = cli_help},
    {.name = "lua",
     .arguments = "FILE [ARGS]",
     .doc = "run a Lua file with the host's Lua runtime",
     .options = no_options,
     .min_args = 1,
     .max_args = CLI_MANY,
     .flags = CLI_PASS_THROUGH | CLI_HIDDEN,
     .run = cli_lua},
    {.name = "worker",
     .arguments = "",
     .doc = "what `run` starts",
     .options = worker_options,
     .flags = CLI_HIDDEN,
     .run = cli_worker},
    {.name = "load",
     .arguments = "",
     .doc = "what `run` starts",
     .options = load_options,
     .flags = CLI_HIDDEN,
     .run = cli_load},
    {.name = NULL},
};
