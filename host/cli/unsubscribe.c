#include "cli/operator.h"

static void print_result(struct cli *cli, const struct operate_result *result,
                         const char *source)
{
    struct buffer sentence = BUFFER_EMPTY;

    buffer_append_string(&sentence, "is unsubscribed");
    if (!result->gone)
        buffer_printf(&sentence, " from '%s'", source);
    buffer_append_string(&sentence, "; removed: ");
    operator_count(&sentence, result->skipped, "skip");
    buffer_append_string(&sentence, ", ");
    operator_count(&sentence, result->undelivered, "undelivered message");
    buffer_append_string(&sentence, ", ");
    operator_count(&sentence, result->checkpoints, "checkpoint");
    if (result->gone)
        buffer_append_string(&sentence,
                             " and its row. What it derived stays; remove that "
                             "before a host runs it from the start again");
    if (result->unread != NULL)
        buffer_printf(&sentence,
                      ". Nobody reads the topic %s now; `moontide topics off "
                      "%s` deletes it, if it is on",
                      result->unread, result->unread);
    operator_print(cli, result, sentence.data);
    buffer_free(&sentence);
}

enum status cli_unsubscribe(struct cli *cli, struct diag *diag)
{
    const struct operate_unsubscribe how = {
        .source = cli_value(cli, "source"),
        .force = cli_given(cli, "force"),
    };
    struct operator_session session;
    struct operate_result result;
    enum status status = operator_open(cli, APPLICATION_ROWS, &session, diag);

    if (status != STATUS_OK)
        return status;
    status = operate_unsubscribe(&session.env, cli->args[0], &how, &result,
                                 diag);
    if (status == STATUS_OK) {
        print_result(cli, &result, how.source);
        operate_result_free(&result);
    }
    operator_close(&session);
    return status;
}
