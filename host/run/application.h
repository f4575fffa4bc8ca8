/*
 * Application -- an opened configuration: database connection, schema,
 * statements, event store and scripts, as far as a verb asks for them.
 */
#ifndef HOST_RUN_APPLICATION_H
#define HOST_RUN_APPLICATION_H

#include "db/catalog.h"
#include "db/db.h"
#include "outbox/outbox.h"
#include "run/settings.h"
#include "script/script.h"
#include "topic/capture.h"
#include "topic/event_store.h"
#include "topic/read_model_topic.h"

enum application_need {
    APPLICATION_DATABASE = 1 << 0,  /* connect; schema_prepare */
    APPLICATION_READ_ONLY = 1 << 1, /* connect; schema_verify, no writes */
    APPLICATION_SCRIPTS = 1 << 2,   /* load the handlers */
    APPLICATION_TABLES = 1 << 3,    /* prepare the declarations' tables */
    APPLICATION_ROWS = 1 << 4, /* connect; schema_verify; only rows change */
    APPLICATION_EVENT_TYPES = 1 << 5, /* load the handlers, if there are any */
};

/** Fields are readable by everybody; only application_* changes them. */
struct application {
    const struct settings *settings; /* borrowed */
    struct clock clock;
    struct log log;
    struct uuid_source ids;
    struct db *db;             /* NULL unless asked for */
    struct catalog *catalog;   /* with db */
    struct event_store *store; /* with db */
    struct capture *capture;   /* with db */
    struct topics topics;      /* of both, and those of read models */
    struct outbox outbox;      /* with db */
    struct script *script;     /* NULL unless asked for */
};

/** `settings` must outlive the application. */
enum status application_open(const struct settings *settings, unsigned needs,
                             struct application *app,
                             struct diag *diag) MUST_CHECK;
/** Only the connection, for what comes before the schema. db_close is owed. */
enum status application_connect(const struct settings *settings, bool read_only,
                                struct db **db, struct diag *diag) MUST_CHECK;
/** What application_open does before it reaches for the database: the log, and
 * the scripts, those of a bundle (script/source_bundle.h) or (TEXT_NONE) as
 * they lie there now. application_close is owed on OK only. */
enum status application_load(const struct settings *settings, unsigned needs,
                             struct text bundle, struct application *app,
                             struct diag *diag) MUST_CHECK;
/** The rest of it, after application_load with the same needs. When it fails
 * the application is as before, and it may be called again. */
enum status application_reach(struct application *app, unsigned needs,
                              struct diag *diag) MUST_CHECK;
/** How long the start of a host waits, in microseconds, for what others hold
 * (run/start.h): a host that stands still has lost its locks by then. */
int64_t application_patience(const struct settings *settings);
/** Loads the scripts of a bundle, or (TEXT_NONE) as they lie there now, into a
 * state of their own; script_close is owed. CONFIG as of script_open. */
enum status application_script(struct application *app, struct text bundle,
                               struct script **script,
                               struct diag *diag) MUST_CHECK;
/** Prepares the tables of those declarations of `script` that are new, or
 * whose shape is another than in `former` (may be NULL). CONFIG with file and
 * line when a table does not fit; REFUSED, before anything is made, when the
 * user lacks a right that a host needs. */
enum status application_tables(struct application *app,
                               const struct script *script,
                               const struct script *former,
                               struct diag *diag) MUST_CHECK;
/** The clock that ages are judged by, so that no host whose own is wrong
 * deletes what others keep: the database's, plus the clock_offset. */
enum status application_clock(struct application *app, int64_t *now_us,
                              struct diag *diag) MUST_CHECK;
void application_close(struct application *app);

#endif
