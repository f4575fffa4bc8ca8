/*
 * `moontide reload` -- asks the hosts of this application on this machine to
 * take the scripts as they lie there now, and waits for what they say.
 */
#include "cli/cli.h"

#include "base/json.h"
#include "run/control.h"

/* What one host says. */
struct said {
    struct buffer status, version, changes, message;
    bool changed;
};

struct hearing {
    struct cli *cli;
    struct buffer json; /* all answers, for --json */
    int count;
};

static void said_free(struct said *said)
{
    buffer_free(&said->status);
    buffer_free(&said->version);
    buffer_free(&said->changes);
    buffer_free(&said->message);
}

static void take_member(struct said *said, struct text key,
                        struct json_value value)
{
    const struct {
        const char *name;
        struct buffer *to;
    } texts[] = {
        {"status", &said->status},
        {"version", &said->version},
        {"changes", &said->changes},
        {"message", &said->message},
    };

    if (text_equal(key, TEXT_LITERAL("changed")))
        said->changed = value.kind == JSON_TRUE;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (value.kind == JSON_STRING &&
            text_equal(key, text_of(texts[i].name)))
            json_decode_string(value, texts[i].to);
}

static enum status take_apart(struct text line, struct said *said,
                              struct diag *diag)
{
    struct json_members members;
    struct buffer scratch = BUFFER_EMPTY;
    struct json_value value;
    struct text key;
    enum status status = json_check(line, NULL, diag);

    *said = (struct said){.changed = false};
    if (status != STATUS_OK || json_first(line).kind != JSON_OBJECT)
        return diag_set(diag, STATUS_FAILED,
                        "the host's answer is not understood: is it of "
                        "another version?");
    members = json_members_of(json_first(line));
    while (json_members_next(&members, &scratch, &key, &value))
        take_member(said, key, value);
    buffer_free(&scratch);
    return STATUS_OK;
}

static enum status status_of(const struct said *said)
{
    static const enum status known[] = {STATUS_OK,      STATUS_CONFIG,
                                        STATUS_REFUSED, STATUS_STOPPED,
                                        STATUS_INVALID, STATUS_PERMANENT};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (text_equal(buffer_text(&said->status),
                       text_of(status_word(known[i]))))
            return known[i] == STATUS_STOPPED ? STATUS_FAILED : known[i];
    return STATUS_FAILED;
}

static enum status hear(void *arg, struct text line, struct diag *diag)
{
    struct hearing *hearing = arg;
    const struct cli *cli = hearing->cli;
    struct said said;
    enum status status = take_apart(line, &said, diag);

    if (status != STATUS_OK)
        return status;
    status = status_of(&said);
    buffer_append_string(&hearing->json, hearing->count++ > 0 ? "," : "");
    buffer_append_text(&hearing->json, line);
    if (status != STATUS_OK)
        diag_set(diag, status, "%s", buffer_text(&said.message).data);
    else if (!cli->json && !cli->quiet && said.changed)
        fprintf(cli->out, "version %.8s is live: %s\n",
                buffer_text(&said.version).data,
                buffer_text(&said.changes).data);
    else if (!cli->json && !cli->quiet)
        fprintf(cli->out, "version %.8s runs already: nothing has changed\n",
                buffer_text(&said.version).data);
    said_free(&said);
    return status;
}

enum status cli_reload(struct cli *cli, struct diag *diag)
{
    struct hearing hearing = {.cli = cli};
    const struct settings *settings;
    int hosts;
    enum status status = cli_settings(cli, &settings, diag);

    if (status != STATUS_OK)
        return status;
    status = control_ask(settings->app_dir,
                         cli_given(cli, "accept") ? "reload accept" : "reload",
                         hear, &hearing, &hosts, diag);
    if (cli->json && hearing.count > 0)
        fprintf(cli->out, "[%s]\n", hearing.json.data);
    buffer_free(&hearing.json);
    return status;
}
