#include "db/sqlite.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <sys/stat.h>

#define LOCK_RETRY_MS 5

/* A host under load leaves the writer's lock for moments only. SQLite's own
 * pauses grow to 100 ms and miss them for seconds. */
#define BUSY_RETRY_MS 1
/* A lock that is held for longer than so many tries is no other's short
 * transaction: whoever waits for it shall cost little. */
#define BUSY_QUICK_TRIES 100
#define BUSY_PATIENT_MS  10

/*
 * The log may grow to 64 MB before it is copied back: against SQLite's own 4 MB
 * that gave appends of 500 events 1.7 times the rate. After a copy it is cut to
 * that size, so a long reader's overgrown log does not stay. A page cache above
 * 16 MB gave nothing more, and the host promises a small footprint.
 */
#define LOG_LIMIT      67108864
#define AS_TEXT(value) #value
#define TEXT_OF(value) AS_TEXT(value)
static const char settings[] = "PRAGMA synchronous = FULL;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA cache_size = -16384;"
                               "PRAGMA wal_autocheckpoint = 16000;"
                               "PRAGMA journal_size_limit = " TEXT_OF(
                                   LOG_LIMIT) ";";

/* --- the file ------------------------------------------------------------ */

static enum status gone(const struct db_session *session, const char *suffix,
                        struct diag *diag)
{
    return diag_set(diag, STATUS_UNAVAILABLE,
                    "the database file %s%s was moved, deleted or replaced "
                    "while it was open; put it back where it was",
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
 * SQLite goes on reading and writing files that nobody can find any more and
 * reports success. So a transaction looks before, and a writing one after.
 */
enum status sqlite_file_check(const struct db_session *session,
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

static void remember_files(struct db_session *session)
{
    struct stat info;

    session->wal_inode = 0;
    if (session->memory)
        return;
    if (stat(session->path, &info) == 0) {
        session->inode = info.st_ino;
        session->device = info.st_dev;
    }
    if (!stat_log(session, &info))
        return;
    session->wal_inode = info.st_ino;
    session->wal_device = info.st_dev;
}

bool sqlite_file_is_same(const struct db_session *session)
{
    struct stat info;

    return session->inode == 0 || stat(session->path, &info) != 0 ||
           (info.st_ino == session->inode && info.st_dev == session->device);
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

/* --- opening ------------------------------------------------------------- */

static enum status run_setting(struct db_session *session, const char *text,
                               struct diag *diag)
{
    int code = sqlite3_exec(session->handle, text, NULL, NULL, NULL);

    return code == SQLITE_OK ? STATUS_OK : sqlite_error(session, code, diag);
}

enum status sqlite_file_open(struct db_session *session, bool create,
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
    if (code == SQLITE_OK)
        code = sqlite_head_register(session->handle);
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

/* Two hosts that make the same file meet here; SQLite does not wait then. */
static enum status switch_to_log(struct db_session *session, struct diag *diag)
{
    int64_t until = clock_monotonic() + session->busy_timeout;
    enum status status;

    do {
        status = run_setting(session, "PRAGMA journal_mode = WAL", diag);
        if (status != STATUS_CONFLICT || clock_monotonic() >= until)
            return status;
        (void)sqlite3_sleep(LOCK_RETRY_MS);
    } while (true);
}

static enum status use_log(struct db_session *session, struct diag *diag)
{
    enum status status;

    if (session->memory || session->read_only ||
        answer_is(session, "PRAGMA journal_mode", "wal"))
        return STATUS_OK;
    status = switch_to_log(session, diag);
    if (status != STATUS_OK)
        return status;
    if (!answer_is(session, "PRAGMA journal_mode", "wal"))
        return diag_set(diag, STATUS_PERMANENT,
                        "%s: a write-ahead log cannot be used there (a network "
                        "file system?); put the file on a local disk",
                        session->path);
    return STATUS_OK;
}

static int wait_for_lock(void *arg, int tries)
{
    struct db_session *session = arg;
    int64_t now = clock_monotonic();

    if (tries == 0)
        session->busy_until = now + session->busy_timeout;
    if (now >= session->busy_until)
        return 0;
    (void)sqlite3_sleep(tries < BUSY_QUICK_TRIES ? BUSY_RETRY_MS
                                                 : BUSY_PATIENT_MS);
    return 1;
}

/* --- the log's size ------------------------------------------------------ */

/* One long transaction of the host may pass the limit for a moment. */
static bool log_is_long(const struct db_session *session, struct stat *info)
{
    return !session->memory && stat_log(session, info) &&
           info->st_size >= 2 * (off_t)LOG_LIMIT;
}

/* Writers of other programs set no limit: the log that they begin anew keeps
 * its size. A reader or writer in the way is not waited for. */
static void cut_log(struct db_session *session)
{
    (void)sqlite3_busy_handler(session->handle, NULL, NULL);
    (void)sqlite3_wal_checkpoint_v2(session->handle, "main",
                                    SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void)sqlite3_busy_handler(session->handle, wait_for_lock, session);
}

void sqlite_file_burden(struct db_session *session, struct buffer *out)
{
    struct stat info;

    if (!log_is_long(session, &info))
        return;
    if (!session->in_transaction && !session->read_only)
        cut_log(session);
    if (!log_is_long(session, &info))
        return;
    buffer_printf(out,
                  "%s-wal has grown to %lld MiB, and %d MiB is its limit: "
                  "another program reads the database in one transaction that "
                  "does not end, and all that is written meanwhile stays in "
                  "that file; end it (`fuser %s` lists who has the database "
                  "open)",
                  session->path, (long long)info.st_size >> 20, LOG_LIMIT >> 20,
                  session->path);
}

/* --- settings ------------------------------------------------------------ */

/* The first read of the schema is what finds a file that is no database. */
enum status sqlite_file_configure(struct db_session *session, struct diag *diag)
{
    enum status status;

    (void)sqlite3_extended_result_codes(session->handle, 1);
    (void)sqlite3_busy_handler(session->handle, wait_for_lock, session);
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
    remember_files(session);
    return STATUS_OK;
}
