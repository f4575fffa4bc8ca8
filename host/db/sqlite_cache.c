#include "db/catalog.h"
#include "db/sqlite.h"

#include "base/memory.h"

#define SHOWN_STATEMENT 200 /* bytes of a statement in an error */

/* --- what a script may not do -------------------------------------------- */

static const char *session_action(int action)
{
    switch (action) {
    case SQLITE_PRAGMA:
        return "PRAGMA";
    case SQLITE_ATTACH:
        return "ATTACH or VACUUM";
    case SQLITE_DETACH:
        return "DETACH";
    case SQLITE_TRANSACTION:
        return "BEGIN, COMMIT or ROLLBACK";
    case SQLITE_SAVEPOINT:
        return "SAVEPOINT, RELEASE or ROLLBACK TO";
    case SQLITE_ANALYZE:
        return "ANALYZE";
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_VIEW:
        return "CREATE TEMP";
    case SQLITE_CREATE_VTABLE:
        return "CREATE VIRTUAL TABLE";
    case SQLITE_DROP_TEMP_INDEX:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_TRIGGER:
    case SQLITE_DROP_TEMP_VIEW:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_VTABLE:
        return "DROP";
    case SQLITE_ALTER_TABLE:
        return "ALTER TABLE";
    default:
        return NULL;
    }
}

static const char *create_action(int action)
{
    switch (action) {
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VIEW:
        return "CREATE";
    case SQLITE_REINDEX: /* CREATE INDEX asks for it, too */
        return "REINDEX";
    default:
        return NULL;
    }
}

static bool writes(int action)
{
    return action == SQLITE_INSERT || action == SQLITE_UPDATE ||
           action == SQLITE_DELETE;
}

static bool is_host_table(const struct db_session *session, const char *table)
{
    const struct catalog_name *name = session->host_tables;

    for (; name != NULL && name->value != NULL && table != NULL; name++)
        if (sqlite3_stricmp(name->value, table) == 0)
            return true;
    return false;
}

int sqlite_cache_authorize(void *arg, int action, const char *first,
                           const char *second, const char *database,
                           const char *trigger)
{
    struct db_session *session = arg;
    const char *denied = NULL;

    (void)database;
    if (session->origin == DB_HOST || session->origin == DB_PERSON)
        return SQLITE_OK;
    denied = session_action(action);
    if (denied == NULL && !session->creates)
        denied = create_action(action);
    if (denied == NULL && session->origin == DB_SCRIPT_READ && writes(action))
        denied = "INSERT, UPDATE or DELETE";
    /* what a trigger does was decided by who made the trigger */
    if (denied == NULL && writes(action) && trigger == NULL &&
        is_host_table(session, first))
        denied = "INSERT, UPDATE or DELETE on a table of the host";
    if (denied == NULL && action == SQLITE_FUNCTION && second != NULL &&
        sqlite3_stricmp(second, "load_extension") == 0)
        denied = "load_extension";
    if (denied == NULL && action == SQLITE_FUNCTION && second != NULL &&
        sqlite3_stricmp(second, SQLITE_HEAD) == 0)
        denied = SQLITE_HEAD;
    if (denied == NULL)
        return SQLITE_OK;
    if (session->denied == NULL)
        session->denied = denied;
    return SQLITE_DENY;
}

enum status sqlite_cache_denied(struct db_session *session, struct diag *diag)
{
    const char *denied = session->denied;

    session->denied = NULL;
    if (session->origin == DB_SCRIPT_READ)
        return diag_set(diag, STATUS_PERMANENT,
                        "a script may not run %s here: it may only read",
                        denied);
    return diag_set(diag, STATUS_PERMANENT,
                    "a script may not run %s: connection, transaction and "
                    "tables belong to the host%s",
                    denied,
                    session->creates ? ""
                                     : " (tables are created by the "
                                       "declaration's fields or tables file)");
}

/* --- order of last use --------------------------------------------------- */

static void unlink_use(struct sqlite_cache *cache,
                       struct sqlite_statement *statement)
{
    if (statement->newer != NULL)
        statement->newer->older = statement->older;
    else
        cache->newest = statement->older;
    if (statement->older != NULL)
        statement->older->newer = statement->newer;
    else
        cache->oldest = statement->newer;
    statement->newer = NULL;
    statement->older = NULL;
}

static void link_newest(struct sqlite_cache *cache,
                        struct sqlite_statement *statement)
{
    statement->older = cache->newest;
    if (cache->newest != NULL)
        cache->newest->newer = statement;
    else
        cache->oldest = statement;
    cache->newest = statement;
}

static struct sqlite_statement **bucket_of(struct sqlite_cache *cache,
                                           uint64_t hash)
{
    return &cache->buckets[hash & (SQLITE_CACHE_BUCKETS - 1)];
}

static void statement_free(struct sqlite_statement *statement)
{
    sqlite3_finalize(statement->handle);
    mem_free((char *)statement->text.data);
    mem_free(statement);
}

/* Takes it out of the cache; its user, if any, frees it. */
static void forget(struct sqlite_cache *cache,
                   struct sqlite_statement *statement)
{
    struct sqlite_statement **at = bucket_of(cache, statement->hash);

    while (*at != statement)
        at = &(*at)->next;
    *at = statement->next;
    unlink_use(cache, statement);
    cache->count--;
    statement->cached = false;
    if (!statement->in_use)
        statement_free(statement);
}

static void add(struct sqlite_cache *cache, struct sqlite_statement *statement)
{
    struct sqlite_statement **bucket = bucket_of(cache, statement->hash);

    if (cache->count == SQLITE_CACHE_MAX)
        forget(cache, cache->oldest);
    statement->next = *bucket;
    *bucket = statement;
    link_newest(cache, statement);
    cache->count++;
    statement->cached = true;
}

static struct sqlite_statement *find(struct sqlite_cache *cache,
                                     const struct db_sql *sql)
{
    struct sqlite_statement *at = *bucket_of(cache, sql->hash);

    while (at != NULL && !(at->hash == sql->hash && at->origin == sql->origin &&
                           text_equal(at->text, sql->text)))
        at = at->next;
    return at;
}

/* --- preparing ----------------------------------------------------------- */

static enum status prepare_error(struct db_session *session, int code,
                                 struct text sql, struct diag *diag)
{
    char shown[SHOWN_STATEMENT + 1];
    enum status status;

    if (session->denied != NULL)
        return sqlite_cache_denied(session, diag);
    status = sqlite_error(session, code, diag);
    if (status != STATUS_PERMANENT || diag == NULL ||
        (code & 0xff) == SQLITE_IOERR)
        return status;
    text_clean(sql, shown, sizeof(shown));
    return diag_append(diag, " in: %s%s", shown,
                       sql.len > SHOWN_STATEMENT ? "..." : "");
}

/* Nothing but white space, comments and semicolons may follow. */
static bool only_one(struct db_session *session, const char *tail, size_t len)
{
    while (len > 0) {
        const char *next = tail;
        sqlite3_stmt *more = NULL;
        int code = sqlite3_prepare_v3(session->handle, tail, (int)len, 0, &more,
                                      &next);

        sqlite3_finalize(more);
        if (code != SQLITE_OK || more != NULL)
            return false;
        if (next == tail)
            return true;
        len -= (size_t)(next - tail);
        tail = next;
    }
    return true;
}

static enum status prepare(struct db_session *session, const struct db_sql *sql,
                           sqlite3_stmt **handle, struct diag *diag)
{
    const char *tail = NULL;
    struct text text = sql->text;
    int code;

    *handle = NULL;
    if (text.len > INT32_MAX / 2 || memchr(text.data, '\0', text.len) != NULL)
        return diag_set(diag, STATUS_PERMANENT,
                        "a statement is too long or holds a NUL byte");
    session->denied = NULL;
    code = sqlite3_prepare_v3(session->handle, text.data, (int)text.len,
                              SQLITE_PREPARE_PERSISTENT, handle, &tail);
    if (code != SQLITE_OK)
        return prepare_error(session, code, text, diag);
    if (*handle == NULL)
        return diag_set(diag, STATUS_PERMANENT, "the statement is empty");
    if (!only_one(session, tail, text.len - (size_t)(tail - text.data))) {
        session->denied = NULL;
        sqlite3_finalize(*handle);
        *handle = NULL;
        return diag_set(diag, STATUS_PERMANENT,
                        "only one statement can be run at a time; more "
                        "follows after the first semicolon");
    }
    return STATUS_OK;
}

enum status sqlite_cache_take(struct db_session *session,
                              const struct db_sql *sql,
                              struct sqlite_statement **statement,
                              struct diag *diag)
{
    struct sqlite_statement *found = find(&session->cache, sql);
    bool twin = found != NULL && found->in_use;
    sqlite3_stmt *handle;
    enum status status;

    session->origin = sql->origin;
    session->creates = false;
    if (found != NULL && !twin) {
        if (session->cache.newest != found) {
            unlink_use(&session->cache, found);
            link_newest(&session->cache, found);
        }
        found->in_use = true;
        *statement = found;
        return STATUS_OK;
    }
    status = prepare(session, sql, &handle, diag);
    if (status != STATUS_OK)
        return status;
    found = mem_alloc(sizeof(*found));
    found->handle = handle;
    found->text = (struct text){mem_copy_text(sql->text.data, sql->text.len),
                                sql->text.len};
    found->hash = sql->hash;
    found->origin = sql->origin;
    found->in_use = true;
    if (!twin)
        add(&session->cache, found);
    *statement = found;
    return STATUS_OK;
}

void sqlite_cache_give(struct db_session *session,
                       struct sqlite_statement *statement)
{
    (void)session;
    statement->in_use = false;
    if (!statement->cached) {
        statement_free(statement);
        return;
    }
    (void)sqlite3_reset(statement->handle); /* repeats the step's error */
    (void)sqlite3_clear_bindings(statement->handle);
}

void sqlite_cache_clear(struct db_session *session)
{
    while (session->cache.oldest != NULL)
        forget(&session->cache, session->cache.oldest);
}
