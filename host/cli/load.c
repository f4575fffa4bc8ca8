/*
 * `moontide load` -- what `moontide run` starts to check saved scripts; nobody
 * else does.
 */
#include "cli/cli.h"

#include "run/script_check.h"

#include <limits.h>

enum status cli_load(struct cli *cli, struct diag *diag)
{
    const struct settings *settings;
    int64_t supervisor;
    enum status status = cli_integer(cli, "supervisor", 0, 0, INT_MAX,
                                     &supervisor, diag);

    if (status != STATUS_OK)
        return status;
    status = cli_settings(cli, &settings, diag);
    if (status == STATUS_OK)
        status = script_check_run(settings, (pid_t)supervisor, diag);
    if (status == STATUS_USAGE) /* a person */
        return status;
    if (status != STATUS_OK)
        script_check_tell_failure(diag);
    /* the supervisor says it */
    cli->exit_code = cli_exit_code(status);
    return status;
}
