#include "cli/operator.h"

enum status cli_pause(struct cli *cli, struct diag *diag)
{
    struct operator_session session;
    struct operate_result result;
    enum status status = operator_open(cli, APPLICATION_ROWS, &session, diag);

    if (status != STATUS_OK)
        return status;
    status = operate_pause(&session.env, cli->args[0], &result, diag);
    if (status == STATUS_OK) {
        operator_print(cli, &result, "is paused");
        operate_result_free(&result);
    }
    operator_close(&session);
    return status;
}
