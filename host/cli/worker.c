/*
 * `moontide worker` -- what `moontide run` starts; nobody else does.
 */
#include "cli/cli.h"

#include "run/worker.h"

#include <limits.h>

enum status cli_worker(struct cli *cli, struct diag *diag)
{
    struct worker_options options = {
        .instance_id = cli_value(cli, "instance"),
        .scripts = cli_value(cli, "scripts"),
        .quiet = cli->quiet,
        .replaces = cli_given(cli, "replaces"),
    };
    int64_t supervisor;
    enum status status = cli_integer(cli, "supervisor", 0, 0, INT_MAX,
                                     &supervisor, diag);

    if (status != STATUS_OK)
        return status;
    options.supervisor = (pid_t)supervisor;
    status = worker_attach(options.supervisor, diag);
    if (status != STATUS_OK)
        return status;
    status = worker_settings(cli->config, &cli->settings, diag);
    cli->settings_loaded = status == STATUS_OK;
    options.settings = &cli->settings;
    if (status != STATUS_OK)
        worker_tell_failure(diag);
    else
        status = worker_run(&options, diag);
    /* the supervisor has been told, and says it once for all workers */
    cli->exit_code = cli_exit_code(status);
    return status;
}
