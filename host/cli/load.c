/*
 * `moontide load` -- what `moontide run` starts to check saved scripts; nobody
 * else does.
 */
#include "cli/cli.h"

#include "run/script_check.h"
#include "run/worker.h"

#include <limits.h>

enum status cli_load(struct cli *cli, struct diag *diag)
{
    int64_t supervisor;
    enum status status = cli_integer(cli, "supervisor", 0, 0, INT_MAX,
                                     &supervisor, diag);

    if (status != STATUS_OK)
        return status;
    status = script_check_attach((pid_t)supervisor, diag);
    if (status != STATUS_OK) /* a person */
        return status;
    status = worker_settings(cli->config, &cli->settings, diag);
    cli->settings_loaded = status == STATUS_OK;
    if (status == STATUS_OK)
        status = script_check_run(&cli->settings, diag);
    if (status != STATUS_OK)
        script_check_tell_failure(diag);
    /* the supervisor says it */
    cli->exit_code = cli_exit_code(status);
    return status;
}
