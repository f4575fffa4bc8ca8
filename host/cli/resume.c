#include "cli/operator.h"
#include "cli/stop.h"

#include <inttypes.h>

static void print_result(struct cli *cli, const struct operate_result *result,
                         const struct operate_resume *how)
{
    struct buffer sentence = BUFFER_EMPTY;

    buffer_append_string(&sentence, "runs again");
    if (result->retried > 0) {
        buffer_append_string(&sentence, "; ");
        operator_count(&sentence, result->retried, "message");
        buffer_append_string(&sentence, result->retried == 1
                                            ? " is tried again"
                                            : " are tried again");
    }
    if (result->skipped > 0) {
        buffer_append_string(&sentence, "; ");
        operator_count(&sentence, result->skipped, "message");
        buffer_printf(&sentence, " %s skipped for %s",
                      result->skipped == 1 ? "is" : "are",
                      how->every_key ? "every key" : "its key");
    }
    if (result->declaration_accepted)
        buffer_append_string(&sentence,
                             ", as it is declared now: its read models stay "
                             "as they are");
    if (result->incomplete_through > 0)
        buffer_printf(&sentence,
                      " behind position %" PRId64
                      ", and what it derives stays marked as incomplete",
                      result->incomplete_through);
    operator_print(cli, result, sentence.data);
    buffer_free(&sentence);
}

enum status cli_resume(struct cli *cli, struct diag *diag)
{
    const struct operate_resume how = {
        .past = cli_given(cli, "past"),
        .every_key = cli_given(cli, "every-key"),
        .accept = cli_given(cli, "accept"),
    };
    struct operator_session session;
    struct operate_result result;
    enum status status;

    if (how.every_key && !how.past)
        return diag_set(diag, STATUS_USAGE,
                        "--every-key says for which keys --past skips a "
                        "message; give both");
    if (how.past && how.accept)
        return diag_set(diag, STATUS_USAGE,
                        "--past and --accept do not go together: a consumer "
                        "is halted by a message or by something else");
    status = operator_open(cli, APPLICATION_ROWS, &session, diag);
    if (status != STATUS_OK)
        return status;
    session.env.stop = stop_on_signals();
    status = operate_resume(&session.env, cli->args[0], &how, &result, diag);
    if (status == STATUS_OK) {
        print_result(cli, &result, &how);
        operate_result_free(&result);
    }
    operator_close(&session);
    return status;
}
