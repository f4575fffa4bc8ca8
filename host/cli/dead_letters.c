#include "cli/dead_letters_print.h"
#include "cli/operator.h"
#include "cli/stop.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define LIMIT_DEFAULT 100

struct request {
    const char *word; /* list, show, retry, delete */
    const char *consumer;
    struct letter_filter filter;
    int64_t limit;
    int64_t older_than, newer_than; /* 0: not given */
    char id[UUID_TEXT_LEN + 1];
};

/* --- what is asked for ---------------------------------------------------- */

static enum status take_id(struct request *r, const char *given,
                           struct diag *diag)
{
    struct uuid id;
    char *end;

    if (uuid_parse(text_of(given), &id)) {
        uuid_format(&id, r->id);
        r->filter.id = r->id;
        return STATUS_OK;
    }
    errno = 0;
    if (isdigit((unsigned char)given[0])) {
        r->filter.position = strtoll(given, &end, 10);
        if (*end == '\0' && errno == 0 && r->filter.position > 0)
            return STATUS_OK;
    }
    return diag_set(diag, STATUS_USAGE,
                    "dead-letters takes a position or a UUID, not '%.100s'; a "
                    "key is given by --key",
                    given);
}

static enum status take_age(const struct cli *cli, const char *name,
                            int64_t *age, struct diag *diag)
{
    const char *given = cli_value(cli, name);

    *age = 0;
    if (given == NULL)
        return STATUS_OK;
    if (clock_parse_duration(text_of(given), age, diag) != STATUS_OK) {
        diag->status = STATUS_USAGE;
        return diag_wrap(diag, "--%s", name);
    }
    if (*age <= 0)
        return diag_set(diag, STATUS_USAGE, "--%s takes an age above zero",
                        name);
    return STATUS_OK;
}

static enum status take_request(const struct cli *cli, struct request *r,
                                struct diag *diag)
{
    enum status status;

    *r = (struct request){
        .word = cli->nargs > 0 ? cli->args[0] : "list",
        .consumer = cli_value(cli, "consumer"),
        .filter =
            {
                .type = cli_value(cli, "type"),
                .key = cli_value(cli, "key"),
                .error = cli_value(cli, "error"),
                .status = cli_value(cli, "status"),
            },
    };
    status = cli_integer(cli, "limit", LIMIT_DEFAULT, 1, INT32_MAX, &r->limit,
                         diag);
    if (status == STATUS_OK)
        status = take_age(cli, "older-than", &r->older_than, diag);
    if (status == STATUS_OK)
        status = take_age(cli, "newer-than", &r->newer_than, diag);
    if (status == STATUS_OK && cli->nargs > 1)
        status = take_id(r, cli->args[1], diag);
    /* every reason has it: a variable of a script that was never set */
    if (status == STATUS_OK && r->filter.error != NULL &&
        r->filter.error[0] == '\0')
        status = diag_set(diag, STATUS_USAGE,
                          "--error takes a part of the reason, and it is "
                          "empty; --all means every message that failed");
    return status;
}

static bool is_narrowed(const struct request *r)
{
    return r->consumer != NULL || r->older_than != 0 || r->newer_than != 0 ||
           letter_filter_narrows(&r->filter);
}

static bool is(const struct request *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

static enum status check_request(const struct cli *cli, const struct request *r,
                                 struct diag *diag)
{
    bool all = cli_given(cli, "all");

    if (all && (r->filter.id != NULL || r->filter.position != 0))
        return diag_set(diag, STATUS_USAGE,
                        "--all and one message do not go together");
    if (is(r, "list") || all || is_narrowed(r))
        return STATUS_OK;
    return diag_set(diag, STATUS_USAGE,
                    "dead-letters %s needs to know which messages: an id, a "
                    "filter such as --consumer, or --all",
                    r->word);
}

/* --- doing it ------------------------------------------------------------- */

static enum status look(struct cli *cli, const struct operate_env *env,
                        const struct request *r, struct diag *diag)
{
    bool whole = is(r, "show");
    struct arena arena = ARENA_EMPTY;
    struct letters letters;
    enum status status = operate_list(
        env, r->consumer, &r->filter, (size_t)r->limit,
        whole ? LETTER_WHOLE : LETTER_TYPE, &arena, &letters, diag);

    if (status == STATUS_OK && whole && letters.count == 0)
        status = diag_set(diag, STATUS_FAILED,
                          "no undelivered message is meant by that; moontide "
                          "dead-letters lists them");
    else if (status == STATUS_OK && whole)
        dead_letters_print_whole(cli, &letters);
    else if (status == STATUS_OK)
        dead_letters_print_list(cli, &letters, clock_now(env->clock));
    arena_free(&arena);
    return status;
}

static enum status change(struct cli *cli, const struct operate_env *env,
                          const struct request *r, struct diag *diag)
{
    bool deletes = is(r, "delete");
    struct letters_result result;
    enum status status = deletes ? operate_delete(env, r->consumer, &r->filter,
                                                  &result, diag)
                                 : operate_retry(env, r->consumer, &r->filter,
                                                 &result, diag);

    if (status != STATUS_OK)
        return status;
    dead_letters_print_change(cli, &result, deletes);
    letters_result_free(&result);
    return STATUS_OK;
}

enum status cli_dead_letters(struct cli *cli, struct diag *diag)
{
    struct operator_session session;
    struct request r;
    bool looks;
    enum status status = take_request(cli, &r, diag);

    if (status == STATUS_OK)
        status = check_request(cli, &r, diag);
    if (status != STATUS_OK)
        return status;
    looks = is(&r, "list") || is(&r, "show");
    status = operator_open(
        cli, looks ? APPLICATION_READ_ONLY : APPLICATION_ROWS, &session, diag);
    if (status != STATUS_OK)
        return status;
    if (r.older_than != 0)
        r.filter.recorded_before = clock_now(session.env.clock) - r.older_than;
    if (r.newer_than != 0)
        r.filter.recorded_after = clock_now(session.env.clock) - r.newer_than;
    if (!looks)
        session.env.stop = stop_on_signals();
    status = looks ? look(cli, &session.env, &r, diag)
                   : change(cli, &session.env, &r, diag);
    operator_close(&session);
    return status;
}
