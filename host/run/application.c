#include "run/application.h"

#include "consumer/deadline.h"
#include "db/url.h"
#include "run/declared_table.h"
#include "run/needed_rights.h"
#include "schema/schema.h"
#include "schema/statistics.h"

#include "base/log_limit.h"
#include "base/memory.h"

#include <unistd.h>

/* How long a statement waits for a lock that another program holds. */
#define BUSY_TIMEOUT (5 * CLOCK_SECOND)
/* ... and one of a host, which is silent meanwhile, as a part of its lease. */
#define BUSY_LEASE_SHARE 2

/* How long a start waits at most: managers of services give up after 90 s. */
#define PATIENCE_CAP (60 * CLOCK_SECOND)

/* What a handler may take beyond its limit until it is ended. */
#define HANDLER_GRACE_US (5 * CLOCK_SECOND)

static void open_log(const struct settings *settings, struct application *app)
{
    app->clock = (struct clock){.offset_us = settings->clock_offset_us};
    app->log = (struct log){
        .out = stderr,
        .level = settings->log_level,
        .format = settings->log_format,
        .clock = &app->clock,
        .limit = log_limit_new(),
    };
}

enum status application_clock(struct application *app, int64_t *now_us,
                              struct diag *diag)
{
    return deadline_clock(app->db, &app->clock, now_us, diag);
}

enum status application_script(struct application *app, struct text bundle,
                               struct script **script, struct diag *diag)
{
    const struct settings *settings = app->settings;
    struct script_options options = {
        .app_dir = settings->app_dir,
        .scripts = settings->scripts,
        .bundle = bundle,
        .dialect = db_url_dialect(settings->database),
        .partitions = settings->partitions,
        .limits =
            {
                .time_us = settings->limit_time_us,
                .memory = settings->limit_memory,
                .payload = settings->limit_payload,
            },
        .policy = settings->policy,
        .jit = settings->jit,
        .grants = (const char *const *)settings->grants,
        .clock = &app->clock,
        .log = &app->log,
    };

    return script_open(&options, script, diag);
}

/* A host that stands still in a transaction, by a handler that runs as long as
 * it may or because it was stopped, keeps others from taking its partitions
 * over no longer than a lease lasts. */
static int64_t host_silence(const struct settings *settings)
{
    int64_t handler = settings->limit_time_us + HANDLER_GRACE_US;

    return settings->lease_duration_us > handler ? settings->lease_duration_us
                                                 : handler;
}

static int64_t host_busy_timeout(const struct settings *settings)
{
    int64_t share = settings->lease_duration_us / BUSY_LEASE_SHARE;

    return share < BUSY_TIMEOUT ? share : BUSY_TIMEOUT;
}

static enum status connect_to(const struct settings *settings, bool create,
                              bool read_only, bool host, struct db **db,
                              struct diag *diag)
{
    struct db_options options = {
        .url = settings->database,
        .busy_timeout = host ? host_busy_timeout(settings) : BUSY_TIMEOUT,
        .create = create,
        .read_only = read_only,
        .host_tables = settings->names.fill,
        .no_prepare = !settings->prepare,
        .silence = host ? host_silence(settings) : 0,
    };

    *db = NULL;
    return db_open(&options, db, diag);
}

enum status application_connect(const struct settings *settings, bool read_only,
                                struct db **db, struct diag *diag)
{
    return connect_to(settings, !read_only, read_only, false, db, diag);
}

static enum status open_database(struct application *app, unsigned needs,
                                 struct diag *diag)
{
    const struct settings *settings = app->settings;
    bool creates = (needs & APPLICATION_DATABASE) != 0;
    struct schema_options schema = {
        .names = &settings->names,
        .partitions = settings->partitions,
        .create = settings->schema_create,
    };
    enum status status;

    status = connect_to(settings, creates, (needs & APPLICATION_READ_ONLY) != 0,
                        (needs & (APPLICATION_TABLES | APPLICATION_ROWS)) != 0,
                        &app->db, diag);
    if (status != STATUS_OK)
        return status;
    status = catalog_open(db_dialect(app->db), settings->names.fill,
                          &app->catalog, diag);
    if (status != STATUS_OK)
        return status;
    status = creates ? schema_prepare(app->db, &schema, diag)
                     : schema_verify(app->db, &schema, diag);
    if (status != STATUS_OK)
        return status;
    status = event_store_open(db_dialect(app->db), &settings->names,
                              app->catalog, settings->partitions, &app->store,
                              diag);
    if (status != STATUS_OK)
        return status;
    status = capture_open(db_dialect(app->db), &settings->names, app->catalog,
                          settings->partitions, &app->capture, diag);
    if (status != STATUS_OK)
        return status;
    app->topics.list[app->topics.count++] = event_store_topic(app->store);
    app->topics.list[app->topics.count++] = capture_topic(app->capture);
    app->outbox = (struct outbox){
        .db = app->db,
        .catalog = app->catalog,
        .names = &settings->names,
        .ids = &app->ids,
    };
    app->topics.read_models = read_model_topics_new(
        db_dialect(app->db), &settings->names, app->catalog,
        settings->partitions);
    return STATUS_OK;
}

/* One that a rebuild makes anew is left to that, see host_open. */
static enum status prepare_query_table(struct application *app,
                                       const struct declaration *declaration,
                                       struct diag *diag)
{
    bool anew;
    enum status status = declared_table_on_change(app, declaration, &anew,
                                                  diag);

    if (status != STATUS_OK || anew)
        return status;
    return declared_table_prepare(app, declaration, diag);
}

static bool has_shape_of(const struct script *former,
                         const struct declaration *declaration)
{
    size_t count = 0;
    const struct declaration *list = former != NULL
                                         ? script_declarations(former, &count)
                                         : NULL;

    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, declaration->name) == 0)
            return strcmp(list[i].fingerprint.part[FINGERPRINT_SHAPE],
                          declaration->fingerprint.part[FINGERPRINT_SHAPE]) ==
                   0;
    return false;
}

enum status application_tables(struct application *app,
                               const struct script *script,
                               const struct script *former, struct diag *diag)
{
    size_t count = 0;
    const struct declaration *declarations = script_declarations(script,
                                                                 &count);
    enum status status = needed_rights_host(app, script, diag);

    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const struct declaration *declaration = &declarations[i];

        if (has_shape_of(former, declaration))
            continue;
        if (declaration->kind == DECLARATION_PROJECTION)
            status = prepare_query_table(app, declaration, diag);
        else
            status = declared_table_script(app, declaration, diag);
        if (status != STATUS_OK)
            return diag_wrap(diag, "%s:%d", declaration->file,
                             declaration->line);
    }
    status = needed_rights_read_models(app, script, diag);
    if (status == STATUS_OK && former == NULL)
        status = statistics_refresh(app->db, &app->settings->names, diag);
    return status;
}

/* A folder of a program that only writes needs none. */
static bool has_scripts(const struct settings *settings)
{
    struct buffer path = BUFFER_EMPTY;
    bool there;

    buffer_printf(&path, "%s/%s", settings->app_dir, settings->scripts);
    there = access(path.data, F_OK) == 0;
    buffer_free(&path);
    return there;
}

enum status application_load(const struct settings *settings, unsigned needs,
                             struct text bundle, struct application *app,
                             struct diag *diag)
{
    enum status status = STATUS_OK;

    *app = (struct application){.settings = settings};
    open_log(settings, app);
    if ((needs & APPLICATION_SCRIPTS) != 0 ||
        ((needs & APPLICATION_EVENT_TYPES) != 0 && has_scripts(settings)))
        status = application_script(app, bundle, &app->script, diag);
    if (status != STATUS_OK)
        application_close(app);
    return status;
}

static void close_database(struct application *app)
{
    event_store_close(app->store);
    app->store = NULL;
    capture_close(app->capture);
    app->capture = NULL;
    read_model_topics_free(app->topics.read_models);
    app->topics = (struct topics){.count = 0};
    if (app->catalog != NULL)
        catalog_close(app->catalog);
    app->catalog = NULL;
    db_close(app->db);
    app->db = NULL;
}

enum status application_reach(struct application *app, unsigned needs,
                              struct diag *diag)
{
    enum status status = STATUS_OK;

    if ((needs & (APPLICATION_DATABASE | APPLICATION_READ_ONLY |
                  APPLICATION_ROWS)) != 0)
        status = open_database(app, needs, diag);
    if (status == STATUS_OK && (needs & APPLICATION_TABLES) != 0)
        status = application_tables(app, app->script, NULL, diag);
    if (status != STATUS_OK)
        close_database(app);
    return status;
}

enum status application_open(const struct settings *settings, unsigned needs,
                             struct application *app, struct diag *diag)
{
    /* scripts first: a broken one must not leave a new database behind */
    enum status status = application_load(settings, needs, TEXT_NONE, app,
                                          diag);

    if (status != STATUS_OK)
        return status;
    status = application_reach(app, needs, diag);
    if (status != STATUS_OK)
        application_close(app);
    return status;
}

int64_t application_patience(const struct settings *settings)
{
    int64_t patience = host_silence(settings) + BUSY_TIMEOUT;

    return patience < PATIENCE_CAP ? patience : PATIENCE_CAP;
}

void application_close(struct application *app)
{
    log_tell(&app->log, true);
    script_close(app->script);
    app->script = NULL;
    close_database(app);
    log_limit_free(app->log.limit);
    app->log.limit = NULL;
}
