#include "run/reload.h"

#include "base/log_limit.h"
#include "base/memory.h"
#include "consumer/declared.h"
#include "model/saga_declared.h"
#include "run/host_parts.h"
#include "run/status_declaration.h"

void reload_report_free(struct reload_report *report)
{
    buffer_free(&report->changes);
}

/* --- what the database says
 * --------------------------------------------------------------------- */

/* Consumers that would be halted. */
struct halting {
    const struct declaration *first;
    struct fingerprint_change change; /* of that */
    size_t count;
};

static enum status find_halting(struct application *app,
                                const struct script *script,
                                struct halting *halting, struct diag *diag)
{
    size_t count;
    const struct declaration *list = script_declarations(script, &count);
    enum status status = db_begin_read(app->db, diag);

    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        const struct consumer_name name = {declaration_consumer_type(&list[i]),
                                           list[i].name};
        struct fingerprint_change change;
        struct consumer_row row;

        status = registry_read(app->db, app->catalog, &name, &row, diag);
        if (status != STATUS_OK || !declaration_is_projection(&list[i]) ||
            !declared_halts(&row, &list[i].fingerprint,
                            list[i].rebuild_on_change, &change))
            continue;
        if (halting->count++ == 0) {
            halting->first = &list[i];
            halting->change = change;
        }
    }
    db_rollback(app->db);
    return status;
}

static enum status refuse_halting(const struct halting *halting,
                                  struct diag *diag)
{
    const struct declaration *first = halting->first;
    struct buffer what = BUFFER_EMPTY, others = BUFFER_EMPTY;
    struct buffer tables = BUFFER_EMPTY;

    fingerprint_describe(&halting->change, &what);
    buffer_append_string(&tables, "");
    status_declaration_tables(&halting->change, first->tables_file, first->name,
                              &tables);
    if (halting->count > 1)
        buffer_printf(&others, " (and %zu more)", halting->count - 1);
    diag_set(diag, STATUS_REFUSED,
             "%s:%d: %s '%s'%s would be halted with DECLARATION_CHANGED: %s "
             "changed since its read models were derived; say on_change = "
             "\"rebuild\" there, or `moontide rebuild %s` and reload again to "
             "derive them anew, or `moontide reload --accept` to keep them%s",
             first->file, first->line, declaration_kind_word(first->kind),
             first->name, buffer_text(&others).data, buffer_text(&what).data,
             first->name, tables.data);
    buffer_free(&what);
    buffer_free(&others);
    buffer_free(&tables);
    return STATUS_REFUSED;
}

/* Sagas that would stand still. */
static enum status check_sagas(struct application *app,
                               const struct script *script, struct diag *diag)
{
    size_t count;
    const struct declaration *list = script_declarations(script, &count);
    struct buffer missing = BUFFER_EMPTY;
    enum status status = db_begin_read(app->db, diag);

    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = saga_declared_look(app->db, app->catalog, &list[i], &missing,
                                    diag);
        if (status == STATUS_OK && missing.len > 0)
            status = diag_set(
                diag, STATUS_REFUSED, "%s:%d: saga '%s' would stand still: %s",
                list[i].file, list[i].line, list[i].name, missing.data);
    }
    db_rollback(app->db);
    buffer_free(&missing);
    return status;
}

/* Whether a host could switch to the script, as far as the database knows. */
static enum status reload_check(struct application *app,
                                const struct script *script, struct diag *diag)
{
    struct halting halting = {.count = 0};
    enum status status = find_halting(app, script, &halting, diag);

    if (status == STATUS_OK && halting.count > 0)
        return refuse_halting(&halting, diag);
    return status == STATUS_OK ? check_sagas(app, script, diag) : status;
}

/* --- the switch
 * ----------------------------------------------------------------------------
 */

static const struct worker *worker_of(const struct host *host,
                                      const struct declaration *declaration)
{
    for (size_t i = 0; i < host->nworkers; i++) {
        const struct worker *worker = &host->workers[i];

        if (strcmp(worker->declared.declaration->name, declaration->name) == 0)
            return worker;
    }
    return NULL;
}

static bool same_declaration(const struct declaration *a,
                             const struct declaration *b)
{
    return fingerprint_equal(&a->fingerprint, &b->fingerprint);
}

/* What the former one has learned of its messages is true of the new one, too:
 * its first page must not be long because nothing is known. */
static void follow(struct worker *worker, const struct worker *former)
{
    struct consumer *c = &worker->declared.consumer;

    worker->added = former == NULL;
    if (former == NULL)
        return;
    if (former->started)
        c->limit = former->declared.consumer.limit;
    memcpy(c->careful_at, former->declared.consumer.careful_at,
           (size_t)c->leases.partitions * sizeof(*c->careful_at));
    c->careful_singly = former->declared.consumer.careful_singly;
    c->keeps_halt = same_declaration(former->declared.declaration,
                                     worker->declared.declaration);
}

static void take_over(struct host *host, struct script *script, bool accept)
{
    struct application *app = host->app;
    struct script *old = app->script;
    size_t count;
    const struct declaration *list = script_declarations(script, &count);
    struct worker *workers = mem_alloc(count * sizeof(*workers) + 1);

    app->script = script;
    host_fill_forget(host);
    script_watch(script, host->options.slot);
    for (size_t i = 0; i < count; i++) {
        declared_consumer_init(&workers[i].declared, app, &host->env, &list[i]);
        workers[i].topic = host_topic_of(host, list[i].source);
        workers[i].declared.consumer.takes_over = accept;
        follow(&workers[i], worker_of(host, &list[i]));
    }
    host_free_workers(host);
    host->workers = workers;
    host->nworkers = count;
    host_lease_consumers(host);
    script_close(old);
}

enum status host_switch(struct host *host, struct script *script,
                        const struct reload_terms *terms, struct diag *diag)
{
    struct application *app = host->app;
    bool undone;
    enum status status = flight_settle(&host->flight, &undone, diag);

    if (status == STATUS_OK && !terms->checked && !terms->accept)
        status = reload_check(app, script, diag);
    if (status == STATUS_OK)
        status = host_save(host, diag);
    if (status == STATUS_OK)
        status = application_tables(app, script, app->script, diag);
    if (status != STATUS_OK)
        return status;
    /* what goes wrong from here on is no repeat of what went wrong before */
    log_tell(&app->log, true);
    if (app->log.limit != NULL)
        log_limit_forget(app->log.limit);
    db_withdraw(app->db); /* it was asked for in the old one's words */
    take_over(host, script, terms->accept);
    host_start_workers(host);
    return STATUS_OK; /* the next step knows what they may apply */
}

static void fill_report(const struct script *from, const struct script *to,
                        struct reload_report *report)
{
    struct script_version before = {.nfiles = 0}, after = {.nfiles = 0};

    script_version_of(from, &before);
    script_version_of(to, &after);
    memcpy(report->former, before.hash, sizeof(report->former));
    memcpy(report->version, after.hash, sizeof(report->version));
    report->changed = strcmp(before.hash, after.hash) != 0;
    script_version_changes(&before, &after, &report->changes);
    script_version_free(&before);
    script_version_free(&after);
}

enum status host_reload(struct host *host, bool accept,
                        struct reload_report *report, struct diag *diag)
{
    struct application *app = host->app;
    const struct reload_terms terms = {.accept = accept};
    struct script *script;
    enum status status;

    *report = (struct reload_report){.changes = BUFFER_EMPTY};
    status = application_script(app, TEXT_NONE, &script, diag);
    if (status != STATUS_OK)
        return status;
    fill_report(app->script, script, report);
    if (!report->changed) {
        script_close(script);
        return STATUS_OK;
    }
    status = host_switch(host, script, &terms, diag);
    if (status != STATUS_OK) {
        script_close(script);
        reload_report_free(report);
        *report = (struct reload_report){.changes = BUFFER_EMPTY};
        return status;
    }
    log_write(&app->log, LOG_INFO, NULL,
              "reloaded the scripts, version %.*s: %s", SCRIPT_VERSION_SHOWN,
              report->version, report->changes.data);
    return STATUS_OK;
}
