#include "run/test_host.h"

#include "base/memory.h"

enum status test_host_open(struct lua_State *L, int index, const char *app_dir,
                           bool late, struct test_host **host_out,
                           struct diag *diag)
{
    struct test_host *host = mem_alloc(sizeof(*host));
    enum status status;

    /* settings are filled where they stay: names point into themselves */
    status = settings_from_table(L, index, app_dir, &host->settings, diag);
    if (status != STATUS_OK)
        goto fail_settings;
    status = application_open(&host->settings,
                              APPLICATION_DATABASE | APPLICATION_SCRIPTS |
                                  APPLICATION_TABLES,
                              &host->app, diag);
    if (status != STATUS_OK)
        goto fail_application;
    if (!late)
        status = host_open(&host->app, NULL, &host->host, diag);
    if (status != STATUS_OK)
        goto fail_host;
    *host_out = host;
    return STATUS_OK;

fail_host:
    application_close(&host->app);
fail_application:
    settings_free(&host->settings);
fail_settings:
    mem_free(host);
    return status;
}

void test_host_close(struct test_host *host)
{
    if (host == NULL)
        return;
    if (host->host != NULL)
        (void)host_close(host->host, NULL); /* nothing waits for it */
    application_close(&host->app);
    settings_free(&host->settings);
    mem_free(host);
}

static enum status write_events(struct test_host *host, bool capture,
                                struct append_event *events, size_t count,
                                struct append_result *results,
                                struct diag *diag)
{
    struct application *app = &host->app;
    const struct append_options options = {
        .ids = &app->ids,
        .now_us = clock_now(&app->clock),
        .payload_limit = host->settings.limit_payload,
    };
    size_t bad = count;
    enum status status = script_check_events(app->script, events, count, &bad,
                                             diag);

    if (status == STATUS_OK)
        status = db_begin(app->db, diag);
    if (status == STATUS_OK)
        status = capture ? capture_append(app->capture, app->db, &options,
                                          events, count, results, &bad, diag)
                         : append_events(app->store, app->db, &options, events,
                                         count, results, &bad, diag);
    if (status == STATUS_OK)
        status = db_commit(app->db, NULL, diag);
    if (status != STATUS_OK) {
        db_rollback(app->db);
        if (bad < count)
            return diag_wrap(diag, "event %zu", bad + 1);
    }
    return status;
}

enum status test_host_append(struct test_host *host,
                             struct append_event *events, size_t count,
                             struct append_result *results, struct diag *diag)
{
    return write_events(host, false, events, count, results, diag);
}

enum status test_host_emit(struct test_host *host, struct append_event *events,
                           size_t count, struct append_result *results,
                           struct diag *diag)
{
    return write_events(host, true, events, count, results, diag);
}

enum status test_host_run(struct test_host *host,
                          struct host_progress *progress, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (host->host == NULL)
        status = host_open(&host->app, NULL, &host->host, diag);
    if (status != STATUS_OK)
        return status;
    host_retry_stuck(host->host);
    status = host_drain(host->host, progress, diag);
    return status == STATUS_OK ? host_stuck(host->host, diag) : status;
}

enum status test_host_redeliver(struct test_host *host, struct diag *diag)
{
    struct host_progress progress;
    enum status status;

    if (host->host == NULL) {
        status = host_open(&host->app, NULL, &host->host, diag);
        if (status != STATUS_OK)
            return status;
    }
    host_lose_next_answer(host->host);
    status = test_host_run(host, &progress, diag);
    if (status != STATUS_OK)
        return status;
    host_forget_last_batch(host->host);
    return test_host_run(host, &progress, diag);
}

enum status test_host_restart(struct test_host *host, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (host->host != NULL)
        status = host_close(host->host, diag);
    host->host = NULL;
    if (status == STATUS_OK)
        status = host_open(&host->app, NULL, &host->host, diag);
    return status;
}

enum status test_host_reload(struct test_host *host, bool accept,
                             struct reload_report *report, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (host->host == NULL)
        status = host_open(&host->app, NULL, &host->host, diag);
    return status == STATUS_OK ? host_reload(host->host, accept, report, diag)
                               : status;
}

enum status test_host_declaration(struct test_host *host, const char *name,
                                  const struct declaration **declaration,
                                  struct diag *diag)
{
    size_t count;
    const struct declaration *list = script_declarations(host->app.script,
                                                         &count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) {
            *declaration = &list[i];
            return STATUS_OK;
        }
    return diag_set(diag, STATUS_USAGE,
                    "the application declares no projection '%s'", name);
}
