#include "db/sqlite.h"

#include <errno.h>

/* What a person can do about a failure of the file itself. */
static const struct {
    int code; /* extended, or primary when no extended one is listed */
    const char *sentence;
} file_errors[] = {
    {SQLITE_READONLY_DBMOVED,
     "the file was moved or deleted while it was open; stop the host, put the "
     "file back and start again"},
    {SQLITE_READONLY_CANTINIT,
     "the folder of the file is not writable, and no other process has opened "
     "the database; SQLite keeps its write-ahead log there"},
    {SQLITE_READONLY_DIRECTORY,
     "the folder of the file is not writable; SQLite keeps its write-ahead "
     "log there"},
    {SQLITE_READONLY,
     "the file or its folder is not writable; give the user of this process "
     "the right to write to both"},
    {SQLITE_FULL, "the disk is full; make room and start again"},
    {SQLITE_NOTADB,
     "the file is not a SQLite database (or it is encrypted); check the path"},
    {SQLITE_CORRUPT,
     "the database is damaged; restore a backup or use sqlite3's .recover"},
    {SQLITE_CANTOPEN,
     "the file cannot be opened; check that it and its folder exist and that "
     "the user of this process may read and write them"},
    {SQLITE_IOERR,
     "reading or writing the file failed; check the disk and the system log"},
    {SQLITE_NOMEM, "there is not enough memory for it now"},
    {SQLITE_PERM, "access to the file was refused; check its permissions"},
    {SQLITE_NOLFS, "the file is too large for this system"},
};

static const char *file_error(int code)
{
    size_t count = sizeof(file_errors) / sizeof(file_errors[0]);

    for (size_t i = 0; i < count; i++) {
        if (file_errors[i].code == code)
            return file_errors[i].sentence;
    }
    for (size_t i = 0; i < count; i++) {
        if (file_errors[i].code == (code & 0xff))
            return file_errors[i].sentence;
    }
    return NULL;
}

/* "UNIQUE constraint failed: t.a, t.b" or "...: index 'name'" */
static void name_constraint(const char *message, struct diag *diag)
{
    const char *names = strstr(message, "failed: ");
    struct text text;

    names = names != NULL ? names + strlen("failed: ") : message;
    text = text_of(names);
    if (strncmp(names, "index '", 7) == 0)
        text = (struct text){names + 7, strcspn(names + 7, "'")};
    text_clean(text, diag->constraint, sizeof(diag->constraint));
}

static enum status unique(const char *message, struct diag *diag)
{
    (void)diag_set(diag, STATUS_UNIQUE, "%s", message);
    if (diag != NULL)
        name_constraint(message, diag);
    return STATUS_UNIQUE;
}

/* "no such table: name", with the schema before it or not. */
static void name_missing(const char *message, struct diag *diag)
{
    static const char before[] = "no such table: ";
    const char *name = message + sizeof(before) - 1;
    const char *point;

    if (strncmp(message, before, sizeof(before) - 1) != 0)
        return;
    point = strchr(name, '.');
    text_clean(text_of(point != NULL ? point + 1 : name), diag->constraint,
               sizeof(diag->constraint));
}

static enum status constraint(int code, const char *message, struct diag *diag)
{
    switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return unique(message, diag);
    default:
        return diag_set(diag, STATUS_PERMANENT, "%s", message);
    }
}

/* The single place where SQLite's codes become the host's vocabulary. */
enum status sqlite_error(struct db_session *session, int code,
                         struct diag *diag)
{
    /* what the host found out by itself has no message in the session */
    const char *message = sqlite3_errcode(session->handle) != SQLITE_OK
                              ? sqlite3_errmsg(session->handle)
                              : sqlite3_errstr(code);

    switch (code & 0xff) { /* the low byte is the primary code */
    case SQLITE_BUSY:
        if (code == SQLITE_BUSY_SNAPSHOT)
            return diag_set(diag, STATUS_CONFLICT,
                            "another connection wrote to %s since this "
                            "transaction read it",
                            session->path);
        return diag_set(diag, STATUS_CONFLICT,
                        "%s is locked by another program; it was waited for "
                        "%.1f seconds",
                        session->path,
                        (double)session->busy_timeout / 1000000.0);
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_SCHEMA:
        return diag_set(diag, STATUS_CONFLICT, "%s: %s", session->path,
                        message);
    case SQLITE_CONSTRAINT:
        return constraint(code, message, diag);
    case SQLITE_INTERRUPT:
        return diag_set(diag, STATUS_FAILED,
                        "the statement ran past its time limit and was "
                        "interrupted");
    default:
        break;
    }
    if (session->read_only && code == SQLITE_READONLY)
        return diag_set(diag, STATUS_PERMANENT,
                        "%s was opened for reading only", session->path);
    /* the file, not the statement: whoever ran it is not to blame */
    if (file_error(code) != NULL)
        return diag_set(diag, STATUS_UNAVAILABLE, "%s: %s (%s)", session->path,
                        file_error(code), message);
    (void)diag_set(diag, STATUS_PERMANENT, "%s", message);
    if (diag != NULL)
        name_missing(message, diag);
    return STATUS_PERMANENT;
}

enum status sqlite_error_open(const char *path, int code, int system_error,
                              struct diag *diag)
{
    if ((code & 0xff) == SQLITE_CANTOPEN)
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "the database %s cannot be opened: %s", path,
                        system_error != 0 ? strerror(system_error)
                                          : sqlite3_errstr(code));
    return diag_set(diag, STATUS_PERMANENT,
                    "the database %s cannot be opened: %s", path,
                    sqlite3_errstr(code));
}
