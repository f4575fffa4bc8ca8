#include "run/status_scripts.h"

#include "run/script_record.h"
#include "run/script_version.h"
#include "run/status_word.h"

/* So many rows are looked at, the newest. */
#define ROWS 200

struct reading {
    struct status_report *report;
    int64_t now;
};

static struct status_script *host_of(struct status_report *report,
                                     struct text id)
{
    for (size_t i = 0; i < report->nscripts; i++)
        if (text_equal(text_of(report->scripts[i].host_id), id))
            return &report->scripts[i];
    report->scripts = arena_grow(&report->arena, report->scripts,
                                 report->nscripts, sizeof(*report->scripts));
    report->scripts[report->nscripts].host_id = arena_string(&report->arena,
                                                             id);
    return &report->scripts[report->nscripts++];
}

/* The newest come first. */
static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct reading *reading = arg;
    struct arena *arena = &reading->report->arena;
    struct status_script *host = host_of(reading->report, db_get_text(row, 0));
    bool live = text_equal(db_get_text(row, 3), TEXT_LITERAL("LIVE"));

    (void)diag;
    host->host = arena_string(arena, db_get_text(row, 1));
    if (live && host->version == NULL) {
        host->version = arena_string(arena, db_get_text(row, 2));
        host->since = db_get_timestamp(row, 4);
        host->changes = arena_string(arena, db_get_text(row, 6));
        host->runs = !db_is_null(row, 5) &&
                     reading->now - db_get_timestamp(row, 5) <
                         SCRIPT_RECORD_GONE_US;
    } else if (!live && host->version == NULL && host->error == NULL) {
        host->refused_at = db_get_timestamp(row, 4);
        host->error = arena_string(arena, db_get_text(row, 7));
    }
    return STATUS_OK;
}

enum status status_scripts_read(struct application *app,
                                struct status_report *report, struct diag *diag)
{
    struct reading reading = {.report = report};
    const struct db_value limit = db_integer(ROWS);
    size_t running = 0;
    enum status status = db_now(app->db, &reading.now, diag);

    if (status == STATUS_OK)
        status = db_rows_each(
            app->db, catalog_sql(app->catalog, SQL_SCRIPT_VERSIONS_READ),
            &limit, 1, take_row, &reading, diag);
    for (size_t i = 0; i < report->nscripts; i++)
        if (report->scripts[i].runs)
            report->scripts[running++] = report->scripts[i];
    report->nscripts = running;
    return status;
}

void status_scripts_problems(struct status_report *report)
{
    struct buffer sentence = BUFFER_EMPTY;

    for (size_t i = 0; i < report->nscripts; i++) {
        const struct status_script *host = &report->scripts[i];

        if (host->error == NULL)
            continue;
        buffer_printf(&sentence,
                      "the host on %s has not taken the saved scripts and goes "
                      "on with version %.*s: %s",
                      host->host, SCRIPT_VERSION_SHOWN, host->version,
                      host->error);
        status_word_keep(&report->arena, &report->problems, &report->nproblems,
                         &sentence);
    }
    buffer_free(&sentence);
}
