#include "db/sqlite.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define URL_PREFIX  "sqlite:"
#define MEMORY_PATH ":memory:"

/*
 * The log may grow to 64 MB before it is copied back: fewer, longer copies
 * gave appends half as much again. After a copy it is cut to that size, so a
 * long reader's overgrown log does not stay. The page cache is bounded because
 * the host promises a small footprint.
 */
static const char settings[] = "PRAGMA synchronous = FULL;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA cache_size = -16384;"
                               "PRAGMA wal_autocheckpoint = 16000;"
                               "PRAGMA journal_size_limit = 67108864;";

static bool accepts(const char *url)
{
    return strncmp(url, URL_PREFIX, strlen(URL_PREFIX)) == 0;
}

/* --- the file ------------------------------------------------------------ */

static enum status gone(const struct db_session *session, const char *suffix,
                        struct diag *diag)
{
    return diag_set(diag, STATUS_PERMANENT,
                    "the database file %s%s was moved, deleted or replaced "
                    "while it was open; stop the host, put the file back and "
                    "start again",
                    session->path, suffix);
}

static bool stat_log(const struct db_session *session, struct stat *info)
{
    struct buffer path = BUFFER_EMPTY;
    bool there;

    buffer_printf(&path, "%s-wal", session->path);
    there = stat(path.data, info) == 0;
    buffer_free(&path);
    return there;
}

/*
 * SQLite goes on writing to files that nobody can find any more and reports
 * success. So a writing transaction looks before and after.
 */
static enum status check_file(const struct db_session *session,
                              struct diag *diag)
{
    int moved = 0;
    struct stat info;

    if (session->memory)
        return STATUS_OK;
    (void)sqlite3_file_control(session->handle, "main", SQLITE_FCNTL_HAS_MOVED,
                               &moved);
    if (moved != 0)
        return gone(session, "", diag);
    if (session->wal_inode == 0)
        return STATUS_OK;
    if (!stat_log(session, &info) || info.st_ino != session->wal_inode ||
        info.st_dev != session->wal_device)
        return gone(session, "-wal", diag);
    return STATUS_OK;
}

static void remember_log(struct db_session *session)
{
    struct stat info;

    session->wal_inode = 0;
    if (session->memory || !stat_log(session, &info))
        return;
    session->wal_inode = info.st_ino;
    session->wal_device = info.st_dev;
}

/* What SQLite would report as "unable to open database file". */
static enum status check_path(const char *path, bool create, struct diag *diag)
{
    struct stat info;

    if (stat(path, &info) == 0) {
        if (S_ISREG(info.st_mode))
            return STATUS_OK;
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "the database %s cannot be opened: it is not a file",
                        path);
    }
    if (errno != ENOENT)
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "the database %s cannot be opened: %s", path,
                        strerror(errno));
    if (!create)
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "there is no database file %s", path);
    return STATUS_OK;
}

static enum status check_folder(const char *path, struct diag *diag)
{
    const char *slash = strrchr(path, '/');
    struct stat info;
    char *folder;
    int result;

    if (slash == NULL || slash == path)
        return STATUS_OK;
    folder = mem_copy_text(path, (size_t)(slash - path));
    result = stat(folder, &info);
    if (result != 0)
        (void)diag_set(diag, STATUS_UNAVAILABLE,
                       "the database %s cannot be opened: the folder %s: %s",
                       path, folder, strerror(errno));
    mem_free(folder);
    return result == 0 ? STATUS_OK : STATUS_UNAVAILABLE;
}

/* --- session ------------------------------------------------------------- */

static enum status run_setting(struct db_session *session, const char *text,
                               struct diag *diag)
{
    int code = sqlite3_exec(session->handle, text, NULL, NULL, NULL);

    return code == SQLITE_OK ? STATUS_OK : sqlite_error(session, code, diag);
}

static enum status open_handle(struct db_session *session, bool create,
                               struct diag *diag)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    enum status status = STATUS_OK;
    int code;

    if (!session->memory)
        status = check_folder(session->path, diag);
    if (status == STATUS_OK && !session->memory)
        status = check_path(session->path, create, diag);
    if (status != STATUS_OK)
        return status;
    if (create || session->memory)
        flags |= SQLITE_OPEN_CREATE;
    code = sqlite3_open_v2(session->path, &session->handle, flags, NULL);
    if (code != SQLITE_OK) {
        status = sqlite_error_open(
            session->path, code,
            session->handle != NULL ? sqlite3_system_errno(session->handle) : 0,
            diag);
        (void)sqlite3_close(session->handle);
        session->handle = NULL;
    }
    return status;
}

static bool answer_is(struct db_session *session, const char *question,
                      const char *wanted)
{
    sqlite3_stmt *handle = NULL;
    bool equal = false;

    if (sqlite3_prepare_v2(session->handle, question, -1, &handle, NULL) ==
            SQLITE_OK &&
        sqlite3_step(handle) == SQLITE_ROW) {
        const char *answer = (const char *)sqlite3_column_text(handle, 0);

        equal = answer != NULL && strcmp(answer, wanted) == 0;
    }
    sqlite3_finalize(handle);
    return equal;
}

static enum status use_log(struct db_session *session, struct diag *diag)
{
    enum status status;

    if (session->memory || session->read_only ||
        answer_is(session, "PRAGMA journal_mode", "wal"))
        return STATUS_OK;
    status = run_setting(session, "PRAGMA journal_mode = WAL", diag);
    if (status != STATUS_OK)
        return status;
    if (!answer_is(session, "PRAGMA journal_mode", "wal"))
        return diag_set(diag, STATUS_PERMANENT,
                        "%s: a write-ahead log cannot be used there (a network "
                        "file system?); put the file on a local disk",
                        session->path);
    return STATUS_OK;
}

/* The first read of the schema is what finds a file that is no database. */
static enum status configure(struct db_session *session, struct diag *diag)
{
    enum status status;

    (void)sqlite3_extended_result_codes(session->handle, 1);
    (void)sqlite3_busy_timeout(session->handle,
                               (int)((session->busy_timeout + 999) / 1000));
    (void)sqlite3_db_config(session->handle,
                            SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    (void)sqlite3_db_config(session->handle, SQLITE_DBCONFIG_DEFENSIVE, 1,
                            NULL);
    status = run_setting(session, "SELECT count(*) FROM sqlite_schema", diag);
    if (status == STATUS_OK)
        status = use_log(session, diag);
    if (status == STATUS_OK)
        status = run_setting(session, settings, diag);
    if (status == STATUS_OK && session->read_only)
        status = run_setting(session, "PRAGMA query_only = ON", diag);
    /* the mode of the log may just have changed */
    if (status == STATUS_OK)
        status = run_setting(session, "SELECT count(*) FROM sqlite_schema",
                             diag);
    if (status != STATUS_OK)
        return status;
    if (!session->read_only &&
        sqlite3_db_readonly(session->handle, "main") == 1)
        return sqlite_error(session, SQLITE_READONLY, diag);
    (void)sqlite3_set_authorizer(session->handle, sqlite_cache_authorize,
                                 session);
    remember_log(session);
    return STATUS_OK;
}

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
    made->busy_timeout = options->busy_timeout;
    status = open_handle(made, options->create && !options->read_only, diag);
    if (status == STATUS_OK) {
        keep_full_path(made);
        status = configure(made, diag);
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
    status = open_handle(session, false, diag);
    if (status == STATUS_OK)
        status = configure(session, diag);
    if (status != STATUS_OK)
        close_handle(session);
    return status;
}

static enum status begin(struct db_session *session, bool write,
                         struct diag *diag)
{
    enum status status;

    if (write) {
        status = check_file(session, diag);
        if (status == STATUS_OK)
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
        status = check_file(session, diag);
    if (status == STATUS_OK)
        status = sqlite_statement_run(session, "COMMIT", diag);
    if (status == STATUS_OK && session->writes)
        status = check_file(session, diag);
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
    .can = 0,
    .accepts = accepts,
    .connect = connect_file,
    .disconnect = disconnect,
    .reconnect = reconnect,
    .begin = begin,
    .run = run,
    .rollback = roll_back,
    .savepoint = savepoint,
    .rollback_to = rollback_to,
    .release = release,
    .execute = sqlite_statement_execute,
    .query = sqlite_rows_query,
    .lookup = sqlite_bulk_lookup,
    .script = sqlite_statement_script,
    .now = now,
    .round_trips = round_trips,
    .create_table = sqlite_shape_create,
    .describe_table = sqlite_shape_describe,
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
