#include "run/rebuild_run.h"

#include "consumer/rebuild_key.h"
#include "consumer/start.h"
#include "run/declared_table.h"

/* How long a rebuild that met another transaction is tried again. */
#define TRY_FOR_US (10 * CLOCK_SECOND)

static enum status check(const struct declaration *declaration,
                         const struct rebuild_order *order, struct diag *diag)
{
    bool sql = declaration->kind == DECLARATION_SQL_PROJECTION;

    if (!declaration_is_projection(declaration))
        return diag_set(diag, STATUS_REFUSED,
                        "%s '%s' is never rebuilt: its effects are done, "
                        "and would be done again",
                        declaration_kind_word(declaration->kind),
                        declaration->name);
    if (order->cancel)
        return STATUS_OK;
    if (sql && order->key != NULL)
        return diag_set(diag, STATUS_REFUSED,
                        "sql_projection '%s' keeps no state per key: only the "
                        "whole of it can be rebuilt",
                        declaration->name);
    if (sql && !declaration->resettable)
        return diag_set(diag, STATUS_REFUSED,
                        "sql_projection '%s' (%s:%d) has no reset: give it "
                        "reset = function(ctx) ... end, which empties its "
                        "tables, so that a rebuild can fill them anew",
                        declaration->name, declaration->file,
                        declaration->line);
    return STATUS_OK;
}

/* With schema.create off nobody may drop or make the table. */
static enum status refuse_table(struct application *app,
                                const struct declaration *declaration,
                                struct diag *diag)
{
    enum status status = declared_table_prepare(app, declaration, diag);

    if (status != STATUS_CONFIG)
        return status;
    if (diag != NULL)
        diag->status = STATUS_REFUSED;
    return STATUS_REFUSED;
}

static enum status rebuild_with_table(struct application *app,
                                      struct declared_consumer *declared,
                                      struct rebuild_report *report,
                                      struct diag *diag)
{
    const struct declaration *declaration = declared->declaration;
    struct consumer *c = &declared->consumer;
    enum status status = STATUS_OK;

    if (!app->settings->schema_create)
        status = refuse_table(app, declaration, diag);
    if (status == STATUS_OK)
        status = rebuild_hold(c, &report->asked, diag);
    if (status == STATUS_OK)
        status = declared_table_drop(app, declaration, diag);
    if (status == STATUS_OK)
        status = rebuild_reset_held(c, &report->reset, diag);
    if (status == STATUS_OK)
        status = declared_table_prepare(app, declaration, diag);
    return status;
}

enum status rebuild_changed(struct application *app,
                            struct declared_consumer *declared,
                            struct rebuild_report *report, struct diag *diag)
{
    const struct declaration *declaration = declared->declaration;
    struct consumer *c = &declared->consumer;
    bool unfit;
    enum status status = declared_table_unfit(app, declaration, &unfit, diag);

    if (status == STATUS_OK && unfit) {
        status = rebuild_with_table(app, declared, report, diag);
    } else if (status == STATUS_OK) {
        status = rebuild_reset_changed(c, &report->reset, diag);
        report->asked = report->reset;
    }
    if (status == STATUS_OK && !report->reset.changed)
        return diag_set(diag, STATUS_CONFLICT,
                        "the state of %s '%s' was changed at the same time",
                        c->name.type, c->name.name);
    return status;
}

static enum status run_once(struct application *app,
                            struct declared_consumer *declared,
                            const struct rebuild_order *order,
                            struct rebuild_report *report, struct diag *diag)
{
    struct consumer *c = &declared->consumer;
    struct failure failure;
    bool unfit;
    enum status status;

    *report = (struct rebuild_report){.applied = 0};
    if (order->cancel)
        return rebuild_cancel(c, &report->asked, diag);
    status = declared_table_unfit(app, declared->declaration, &unfit, diag);
    if (status != STATUS_OK)
        return status;
    if (order->key == NULL && (unfit || rebuild_is_changed(c))) {
        status = declared_table_script(app, declared->declaration, diag);
        return status == STATUS_OK
                   ? rebuild_changed(app, declared, report, diag)
                   : status;
    }
    if (unfit) /* says what is wrong with it, or makes it */
        status = declared_table_prepare(app, declared->declaration, diag);
    if (status != STATUS_OK)
        return status;
    if (order->key != NULL)
        return rebuild_key(c, text_of(order->key), &report->applied, &failure,
                           diag);
    status = rebuild_ask(c, order->restart, &report->asked, diag);
    if (status == STATUS_OK &&
        (report->asked.changed || report->asked.was == CONSUMER_REBUILDING))
        status = rebuild_reset(c, &report->reset, diag);
    return status;
}

enum status rebuild_run(struct application *app,
                        const struct rebuild_order *order,
                        struct rebuild_report *report, struct diag *diag)
{
    const struct consumer_env env = declared_consumer_env(app);
    const struct declaration *declaration;
    struct declared_consumer declared;
    int64_t end = clock_monotonic() + TRY_FOR_US;
    bool made = false; /* a table that was not there */
    enum status status = declared_consumer_find(app, order->consumer,
                                                &declaration, diag);

    if (status == STATUS_OK)
        status = check(declaration, order, diag);
    if (status != STATUS_OK)
        return status;
    declared_consumer_init(&declared, app, &env, declaration);
    status = start_open(&declared.consumer, diag);
    while (status == STATUS_OK) {
        status = run_once(app, &declared, order, report, diag);
        if (!made && declared_table_made(app, declaration, &status, diag)) {
            made = true;
            continue;
        }
        if (status != STATUS_CONFLICT || clock_monotonic() >= end)
            break;
        status = STATUS_OK;
    }
    declared_consumer_free(&declared);
    return status;
}

static enum status take_hosts(void *arg, struct db_rows *row, struct diag *diag)
{
    (void)diag;
    *(int64_t *)arg = db_get_int64(row, 0);
    return STATUS_OK;
}

/* Nobody else replays: without one of them nothing moves. */
static enum status read_hosts(struct application *app,
                              const struct consumer_name *name, int64_t *hosts,
                              struct diag *diag)
{
    const struct db_value params[] = {db_string(name->type),
                                      db_string(name->name)};

    return db_rows_each(app->db, catalog_sql(app->catalog, SQL_CONSUMER_HOSTS),
                        params, 2, take_hosts, hosts, diag);
}

enum status rebuild_progress_read(struct application *app, const char *consumer,
                                  struct rebuild_progress *progress,
                                  struct diag *diag)
{
    const struct consumer_env env = declared_consumer_env(app);
    const struct declaration *declaration;
    struct declared_consumer declared;
    const struct consumer *c = &declared.consumer;
    enum status status = declared_consumer_find(app, consumer, &declaration,
                                                diag);

    *progress = (struct rebuild_progress){.done = 0};
    if (status != STATUS_OK)
        return status;
    declared_consumer_init(&declared, app, &env, declaration);
    status = start_open(&declared.consumer, diag);
    if (status == STATUS_OK) {
        int64_t lowest = INT64_MAX;

        for (int p = 0; p < c->stored.partitions; p++)
            if (c->stored.position[p] < lowest)
                lowest = c->stored.position[p];
        *progress = (struct rebuild_progress){
            .replaying = c->replay_through != CHECKPOINT_NONE,
            .state = c->row.state,
            .done = lowest > 0 ? lowest : 0,
            .through = c->replay_through,
            .since_us = c->row.state_since,
        };
        if (progress->replaying || progress->state == CONSUMER_REBUILDING)
            status = read_hosts(app, &c->name, &progress->hosts, diag);
    }
    declared_consumer_free(&declared);
    return status;
}
