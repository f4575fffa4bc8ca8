#include "model/handler_sql.h"

#include "base/memory.h"
#include "db/shape.h"
#include "model/upsert_group.h"

#include <assert.h>

#define WHERE_SIZE 256

/* One thing that the batch will send: a statement, or a group of upserts. */
struct entry {
    struct upsert_group *group; /* NULL: a statement */
    const struct db_sql *sql;
    struct db_value *params;
    size_t nparams;
    const char *where;
};

struct handler_sql {
    struct db *db;
    bool may_write;
    struct arena arena; /* entries' bytes, of the batch */
    struct entry *entries;
    size_t count, capacity;
    size_t sent;                   /* entries handed to the connection */
    size_t joinable;               /* groups from here on may take more rows */
    struct upsert_journal journal; /* how to undo the call's changes */
    /* the call under way */
    size_t call_first;    /* entries it added start here */
    size_t call_joinable; /* `joinable` when it began */
    bool call_ran;        /* it wrote in the database at once */
    bool doomed;          /* the transaction has failed */
    bool timed;           /* the connection has a deadline */
    int tries;            /* savepoints of ctx:try that are open */
};

struct handler_sql *handler_sql_new(struct db *db)
{
    struct handler_sql *sql = mem_alloc(sizeof(*sql));

    sql->db = db;
    return sql;
}

static void drop_entries(struct handler_sql *sql, size_t from)
{
    for (size_t i = from; i < sql->count; i++)
        if (sql->entries[i].group != NULL)
            upsert_group_free(sql->entries[i].group);
    sql->count = from;
}

void handler_sql_free(struct handler_sql *sql)
{
    if (sql == NULL)
        return;
    drop_entries(sql, 0);
    mem_free(sql->entries);
    arena_free(&sql->arena);
    upsert_journal_free(&sql->journal);
    mem_free(sql);
}

void handler_sql_batch_begin(struct handler_sql *sql, bool may_write)
{
    drop_entries(sql, 0);
    arena_reset(&sql->arena);
    upsert_journal_clear(&sql->journal);
    sql->may_write = may_write;
    sql->sent = sql->joinable = sql->call_first = sql->call_joinable = 0;
    sql->call_ran = sql->doomed = false;
    sql->tries = 0;
}

void handler_sql_print_name(const struct handler_sql *sql, const char *name,
                            struct buffer *out)
{
    db_print_name(sql->db, name, out);
}

bool handler_sql_may_write(const struct handler_sql *sql)
{
    return sql->may_write;
}

void handler_sql_deadline(struct handler_sql *sql, int64_t at_us)
{
    if (!sql->timed && at_us == 0)
        return;
    db_deadline(sql->db, at_us);
    sql->timed = at_us != 0;
}

/* --- calls and their undo ---------------------------------------------------
 */

void handler_sql_call_begin(struct handler_sql *sql)
{
    assert(sql->tries == 0);
    sql->call_first = sql->count;
    sql->call_joinable = sql->joinable;
    sql->call_ran = false;
    upsert_journal_clear(&sql->journal);
}

bool handler_sql_call_ran(const struct handler_sql *sql)
{
    return sql->call_ran;
}

bool handler_sql_call_undo(struct handler_sql *sql)
{
    if (sql->doomed || sql->call_ran)
        return false;
    drop_entries(sql, sql->call_first);
    sql->joinable = sql->call_joinable;
    upsert_journal_undo(&sql->journal);
    return true;
}

void handler_sql_call_forget(struct handler_sql *sql)
{
    drop_entries(sql, sql->call_first);
    if (sql->sent > sql->count)
        sql->sent = sql->count;
    sql->joinable = sql->count;
    upsert_journal_clear(&sql->journal);
    sql->doomed = false;
}

/* --- queueing
 * ----------------------------------------------------------------- */

static struct entry *entry_add(struct handler_sql *sql, const char *where)
{
    struct entry *entry;

    if (sql->count == sql->capacity) {
        sql->capacity = sql->capacity == 0 ? 64 : 2 * sql->capacity;
        sql->entries = mem_grow(sql->entries, sql->capacity,
                                sizeof(*sql->entries));
    }
    entry = &sql->entries[sql->count++];
    *entry = (struct entry){
        .where = arena_string(&sql->arena, text_of(where)),
    };
    return entry;
}

static enum status refuse_write(struct diag *diag)
{
    return diag_set(diag, STATUS_INVALID,
                    "a projection with state may only query: its state is "
                    "what it writes; use sql_projection for tables");
}

enum status handler_sql_execute(struct handler_sql *sql,
                                const struct db_sql *statement,
                                const struct db_value *params, size_t nparams,
                                const char *where, struct diag *diag)
{
    struct entry *entry;

    if (!sql->may_write)
        return refuse_write(diag);
    entry = entry_add(sql, where);
    entry->sql = statement;
    entry->nparams = nparams;
    entry->params = arena_alloc(&sql->arena,
                                nparams * sizeof(*entry->params) + 1);
    for (size_t i = 0; i < nparams; i++)
        entry->params[i] = upsert_keep_value(&sql->arena, &params[i]);
    sql->joinable = sql->count; /* what follows must not move before it */
    return STATUS_OK;
}

/* The place of the newest group that may take the upsert, or the end. Nothing
 * but groups lies from `joinable` on. */
static size_t find_group(const struct handler_sql *sql, const char *table,
                         const struct handler_value *keys, size_t nkeys,
                         const struct handler_value *values, size_t nvalues)
{
    size_t from = sql->joinable > sql->sent ? sql->joinable : sql->sent;
    size_t i = sql->count;

    do {
        if (i == from)
            return sql->count;
        i--;
    } while (!upsert_group_takes(sql->entries[i].group, table, keys, nkeys,
                                 values, nvalues));
    for (size_t later = i + 1; later < sql->count; later++)
        if (!upsert_group_may_pass(sql->entries[later].group,
                                   sql->entries[i].group, keys, nkeys, values,
                                   nvalues))
            return sql->count;
    return i;
}

enum status handler_sql_upsert(struct handler_sql *sql, const char *table,
                               const struct handler_value *keys, size_t nkeys,
                               const struct handler_value *values,
                               size_t nvalues, handler_where_fn where,
                               void *arg, struct diag *diag)
{
    struct upsert_group *group;
    char line[WHERE_SIZE];
    size_t at;
    enum status status;

    if (!sql->may_write)
        return refuse_write(diag);
    at = find_group(sql, table, keys, nkeys, values, nvalues);
    if (at < sql->count) /* rows of this call's own groups go with the group */
        return upsert_group_add(sql->entries[at].group, keys, values,
                                at < sql->call_first ? &sql->journal : NULL,
                                diag);
    status = upsert_group_new(table, keys, nkeys, values, nvalues, &group,
                              diag);
    if (status != STATUS_OK)
        return status;
    where(arg, line, sizeof(line));
    entry_add(sql, line)->group = group;
    return upsert_group_add(group, keys, values, NULL, diag);
}

/* --- sending
 * -------------------------------------------------------------------- */

enum status handler_sql_send(struct handler_sql *sql, struct diag *diag)
{
    enum status status = STATUS_OK;

    while (status == STATUS_OK && sql->sent < sql->count) {
        const struct entry *e = &sql->entries[sql->sent];
        int64_t tag = (int64_t)sql->sent;

        if (e->group != NULL)
            status = upsert_group_queue(e->group, sql->db, tag, diag);
        else
            status = db_queue(sql->db, e->sql, e->params, e->nparams,
                              DB_ANY_ROWS, tag, diag);
        sql->sent++;
    }
    return status;
}

const char *handler_sql_where(const struct handler_sql *sql, int64_t tag)
{
    if (tag < 0 || (size_t)tag >= sql->count)
        return "";
    return sql->entries[tag].where;
}

/* What was queued before goes out first, in order. When one of those fails it
 * is not the doing of the statement that follows: `doomed` tells. */
static enum status send_before(struct handler_sql *sql, struct diag *diag)
{
    bool own = sql->count > sql->call_first && sql->sent < sql->count;
    int64_t tag = -1;
    enum status status = handler_sql_send(sql, diag);

    sql->joinable = sql->count;
    if (status == STATUS_OK)
        status = db_flush(sql->db, &tag, diag);
    if (own)
        sql->call_ran = true;
    if (status != STATUS_OK) {
        sql->doomed = true;
        diag_wrap(diag, "%s", handler_sql_where(sql, tag));
    }
    return status;
}

static enum status note(struct handler_sql *sql, enum status status)
{
    if (status != STATUS_OK)
        sql->doomed = true; /* until a savepoint takes it back */
    return status;
}

enum status handler_sql_update(struct handler_sql *sql,
                               const struct db_sql *statement,
                               const struct db_value *params, size_t nparams,
                               int64_t *affected, struct diag *diag)
{
    enum status status;

    if (!sql->may_write)
        return refuse_write(diag);
    status = send_before(sql, diag);
    if (status != STATUS_OK)
        return status;
    sql->call_ran = true;
    return note(
        sql, db_execute(sql->db, statement, params, nparams, affected, diag));
}

enum status handler_sql_other(struct handler_sql *sql, struct diag *diag)
{
    enum status status = send_before(sql, diag);

    if (status == STATUS_OK)
        sql->call_ran = true;
    return status;
}

enum status handler_sql_other_done(struct handler_sql *sql, enum status status)
{
    return note(sql, status);
}

enum status handler_sql_query(struct handler_sql *sql,
                              const struct db_sql *statement,
                              const struct db_value *params, size_t nparams,
                              struct db_rows **rows, struct diag *diag)
{
    struct db_sql reading = *statement;
    enum status status = send_before(sql, diag);

    if (status != STATUS_OK)
        return status;
    if (sql->may_write)
        sql->call_ran = true; /* INSERT ... RETURNING is a query, too */
    else
        reading.origin = DB_SCRIPT_READ;
    return note(sql, db_query(sql->db, &reading, params, nparams, rows, diag));
}

/* --- ctx:try
 * ---------------------------------------------------------------------- */

enum status handler_sql_try(struct handler_sql *sql, struct diag *diag)
{
    enum status status = send_before(sql, diag);

    if (status != STATUS_OK)
        return status;
    sql->call_ran = true;
    status = db_savepoint(sql->db, diag);
    if (status == STATUS_OK)
        sql->tries++;
    return note(sql, status);
}

enum status handler_sql_try_end(struct handler_sql *sql, bool keep,
                                struct diag *diag)
{
    enum status status = STATUS_OK;

    assert(sql->tries > 0);
    sql->tries--;
    if (keep)
        status = send_before(sql, diag);
    if (keep && status == STATUS_OK)
        return note(sql, db_release(sql->db, diag));
    if (keep)
        return status;
    /* what was queued inside was sent by nobody: forget it, then go back */
    drop_entries(sql, sql->sent);
    sql->joinable = sql->count;
    status = db_rollback_to(sql->db, diag);
    sql->doomed = status != STATUS_OK;
    return status;
}
