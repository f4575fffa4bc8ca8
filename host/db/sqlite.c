#include "db/sqlite.h"

#include "base/clock.h"
#include "base/memory.h"
#include "db/listener_kind.h"

#include <stdio.h>

#define URL_PREFIX  "sqlite:"
#define MEMORY_PATH ":memory:"

#define DEADLINE_STEPS 20000 /* of SQLite's machine between two looks */

static bool accepts(const char *url)
{
    return strncmp(url, URL_PREFIX, strlen(URL_PREFIX)) == 0;
}

/* --- session ------------------------------------------------------------- */

static void close_handle(struct db_session *session)
{
    sqlite_rows_end_all(session);
    sqlite_cache_clear(session);
    (void)sqlite3_close_v2(session->handle);
    session->handle = NULL;
    session->in_transaction = false;
}

static void disconnect(struct db_session *session)
{
    close_handle(session);
    buffer_free(&session->text);
    buffer_free(&session->arrays);
    mem_free(session->path);
    mem_free(session);
}

/* A relative name that begins with "file:" or ":" means something else to
 * SQLite; with "./" in front it is a path like any other. */
static char *plain_path(const char *path)
{
    struct buffer out = BUFFER_EMPTY;

    if (strcmp(path, MEMORY_PATH) != 0 && path[0] != '/')
        buffer_append_string(&out, "./");
    buffer_append_string(&out, path);
    return out.data;
}

/* So that the session finds its file again from another working folder. */
static void keep_full_path(struct db_session *session)
{
    const char *full = sqlite3_db_filename(session->handle, "main");

    if (session->memory || full == NULL || full[0] == '\0')
        return;
    mem_free(session->path);
    session->path = mem_copy_text(full, strlen(full));
}

const char *sqlite_file_of(const char *url)
{
    const char *path = url + strlen(URL_PREFIX);

    return strcmp(path, MEMORY_PATH) != 0 ? path : NULL;
}

/* A file that is locked when it is opened: there is no transaction yet that
 * could be run again. */
static enum status locked_as(enum status status, struct diag *diag)
{
    if (diag != NULL)
        diag->status = status;
    return status;
}

static enum status connect_file(const struct db_options *options,
                                struct db_session **session, struct diag *diag)
{
    const char *path = options->url + strlen(URL_PREFIX);
    struct db_session *made;
    enum status status;

    if (path[0] == '\0' || strncmp(path, "//", 2) == 0)
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL names no file; write sqlite:PATH or "
                        "sqlite::memory:");
    made = mem_alloc(sizeof(*made));
    made->path = plain_path(path);
    made->memory = strcmp(path, MEMORY_PATH) == 0;
    made->read_only = options->read_only;
    made->host_tables = options->host_tables;
    made->busy_timeout = options->busy_timeout;
    status = sqlite_file_open(made, options->create && !options->read_only,
                              diag);
    if (status == STATUS_OK) {
        keep_full_path(made);
        status = sqlite_file_configure(made, diag);
        if (status == STATUS_CONFLICT)
            status = locked_as(STATUS_BUSY, diag);
    }
    if (status != STATUS_OK) {
        disconnect(made);
        return status;
    }
    *session = made;
    return STATUS_OK;
}

/* --- transactions -------------------------------------------------------- */

static bool in_transaction(const struct db_session *session)
{
    return sqlite3_get_autocommit(session->handle) == 0;
}

static enum status rolled_back(struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT,
                    "SQLite rolled the transaction back before its end; "
                    "nothing of it was kept");
}

static bool roll_back(struct db_session *session)
{
    sqlite_rows_end_all(session);
    session->in_transaction = false;
    /* some errors end the transaction by themselves */
    if (!in_transaction(session))
        return true;
    session->origin = DB_HOST; /* it may be a script's statement that failed */
    (void)sqlite3_exec(session->handle, "ROLLBACK", NULL, NULL, NULL);
    return !in_transaction(session);
}

static int past_deadline(void *arg)
{
    const struct db_session *session = arg;

    return clock_monotonic() >= session->deadline;
}

static void set_deadline(struct db_session *session, int64_t at_us)
{
    session->deadline = at_us;
    if (session->handle != NULL)
        sqlite3_progress_handler(session->handle,
                                 at_us != 0 ? DEADLINE_STEPS : 0,
                                 at_us != 0 ? past_deadline : NULL, session);
}

static enum status other_file(const struct db_session *session,
                              struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT,
                    "another file now lies at %s than the one that was "
                    "opened; start again to use it",
                    session->path);
}

/* What was read so far says nothing about another file, which may come to lie
 * there at any moment: so what was opened is compared, too. */
static enum status open_same(struct db_session *session, struct diag *diag)
{
    const ino_t inode = session->inode;
    const dev_t device = session->device;
    enum status status;

    if (!sqlite_file_is_same(session))
        return other_file(session, diag);
    status = sqlite_file_open(session, false, diag);
    if (status == STATUS_OK)
        status = sqlite_file_configure(session, diag);
    if (status != STATUS_OK || inode == 0 ||
        (session->inode == inode && session->device == device))
        return status;
    session->inode = inode;
    session->device = device;
    return other_file(session, diag);
}

static enum status reconnect(struct db_session *session, struct diag *diag)
{
    enum status status;

    if (session->handle != NULL && session->memory) {
        if (roll_back(session))
            return STATUS_OK;
        return diag_set(diag, STATUS_PERMANENT,
                        "the database in memory cannot be rolled back");
    }
    close_handle(session);
    status = open_same(session, diag);
    if (status == STATUS_CONFLICT)
        status = locked_as(STATUS_UNAVAILABLE, diag);
    if (status == STATUS_OK)
        set_deadline(session, session->deadline);
    else
        close_handle(session);
    return status;
}

static enum status begin(struct db_session *session, bool write,
                         struct diag *diag)
{
    enum status status = sqlite_file_check(session, diag);

    if (status != STATUS_OK)
        return status;
    if (write) {
        status = sqlite_statement_run(session, "BEGIN IMMEDIATE", diag);
    } else {
        status = sqlite_statement_run(session, "BEGIN", diag);
        /* BEGIN reads nothing; the first SELECT fixes the view */
        if (status == STATUS_OK)
            status = sqlite_statement_run(
                session, "SELECT 1 FROM sqlite_schema LIMIT 1", diag);
        if (status != STATUS_OK)
            (void)roll_back(session);
    }
    session->in_transaction = status == STATUS_OK;
    session->writes = write;
    return status;
}

static enum status commit(struct db_session *session, struct diag *diag)
{
    enum status status = STATUS_OK;

    sqlite_rows_end_all(session);
    if (!in_transaction(session))
        return rolled_back(diag);
    if (session->writes)
        status = sqlite_file_check(session, diag);
    if (status == STATUS_OK)
        status = sqlite_statement_run(session, "COMMIT", diag);
    if (status == STATUS_OK && session->writes)
        status = sqlite_file_check(session, diag);
    if (status == STATUS_OK)
        session->in_transaction = false;
    return status;
}

static enum status run(struct db_session *session,
                       const struct db_queued *queue, size_t count,
                       enum db_end end, size_t *failed, struct diag *diag)
{
    enum status status = sqlite_bulk_run(session, queue, count, failed, diag);

    if (status != STATUS_OK || end == DB_END_NONE)
        return status;
    return commit(session, diag);
}

/* Outside of a transaction a statement is one by itself. */
static enum status execute(struct db_session *session, const struct db_sql *sql,
                           const struct db_value *params, size_t nparams,
                           int64_t *affected, struct diag *diag)
{
    bool alone = !in_transaction(session);
    enum status status = alone ? sqlite_file_check(session, diag) : STATUS_OK;

    if (status == STATUS_OK)
        status = sqlite_statement_execute(session, sql, params, nparams,
                                          affected, diag);
    if (status == STATUS_OK && alone)
        status = sqlite_file_check(session, diag);
    return status;
}

static enum status query(struct db_session *session, const struct db_sql *sql,
                         const struct db_value *params, size_t nparams,
                         struct db_rows **rows, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (!in_transaction(session))
        status = sqlite_file_check(session, diag);
    if (status != STATUS_OK)
        return status;
    return sqlite_rows_query(session, sql, params, nparams, rows, diag);
}

static enum status script(struct db_session *session, struct text text,
                          enum db_origin origin, struct diag *diag)
{
    enum status status = sqlite_file_check(session, diag);

    if (status == STATUS_OK)
        status = sqlite_statement_script(session, text, origin, diag);
    return status == STATUS_OK ? sqlite_file_check(session, diag) : status;
}

static enum status run_numbered(struct db_session *session, const char *what,
                                int depth, struct diag *diag)
{
    char text[64];

    if (session->in_transaction && !in_transaction(session))
        return rolled_back(diag);
    (void)snprintf(text, sizeof(text), "%s moontide_%d", what, depth);
    return sqlite_statement_run(session, text, diag);
}

static enum status savepoint(struct db_session *session, int depth,
                             struct diag *diag)
{
    return run_numbered(session, "SAVEPOINT", depth, diag);
}

static enum status release(struct db_session *session, int depth,
                           struct diag *diag)
{
    return run_numbered(session, "RELEASE", depth, diag);
}

static enum status rollback_to(struct db_session *session, int depth,
                               struct diag *diag)
{
    enum status status = run_numbered(session, "ROLLBACK TO", depth, diag);

    return status == STATUS_OK ? release(session, depth, diag) : status;
}

/* The file is on this machine, so its clock is the database's. */
static enum status now(struct db_session *session, int64_t *now_us,
                       struct diag *diag)
{
    (void)session;
    (void)diag;
    *now_us = clock_now(NULL);
    return STATUS_OK;
}

static int64_t round_trips(const struct db_session *session)
{
    return session->round_trips;
}

const struct db_driver db_sqlite_driver = {
    .name = "sqlite",
    .can = DB_CAN_MERGE,
    .accepts = accepts,
    .connect = connect_file,
    .disconnect = disconnect,
    .reconnect = reconnect,
    .listener = &sqlite_listener,
    .begin = begin,
    .run = run,
    .rollback = roll_back,
    .savepoint = savepoint,
    .rollback_to = rollback_to,
    .release = release,
    .execute = execute,
    .query = query,
    .lookup = sqlite_bulk_lookup,
    .script = script,
    .now = now,
    .burden = sqlite_file_burden,
    .round_trips = round_trips,
    .deadline = set_deadline,
    .create_table = sqlite_shape_create,
    .describe_table = sqlite_shape_describe,
    .print_name = sqlite_shape_name,
    .print_table = sqlite_shape_print,
    .column_fits = sqlite_shape_fits,
    .next = sqlite_rows_next,
    .rows_close = sqlite_rows_close,
    .columns = sqlite_rows_columns,
    .column_name = sqlite_rows_column_name,
    .column_type = sqlite_rows_column_type,
    .get_int64 = sqlite_rows_get_int64,
    .get_double = sqlite_rows_get_double,
    .get_bool = sqlite_rows_get_bool,
    .get_text = sqlite_rows_get_text,
    .get_timestamp = sqlite_rows_get_timestamp,
    .get_uuid = sqlite_rows_get_uuid,
};
