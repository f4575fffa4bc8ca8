#include "db/mysql_session.h"

#include "base/clock.h"

#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>

/*
 * Statements go out without waiting for the answer of the one before, up to
 * this many: the answers must fit into the buffers between server and host,
 * or both would wait for each other.
 */
#define UNANSWERED_MAX 64

/* A bulk statement is sent in parts of this size. */
#define PART_ROWS  4096
#define PART_BYTES (4u << 20)

#define ORDER_MAX 1024 /* marks of a bulk statement */

struct sent {
    size_t item;                       /* in the queue */
    struct mysql_statement *statement; /* in use until it is answered */
    int64_t expect;                    /* rows, or DB_ANY_ROWS */
    const struct db_value *row;        /* the only row of a bulk, or NULL */
};

struct run {
    struct db_session *session;
    const struct db_queued *queue;
    struct sent sent[UNANSWERED_MAX];
    size_t nsent;
    size_t failed;
    enum status status; /* the first failure */
    int64_t failed_at;  /* clock_monotonic, when that came in */
    struct diag *diag;
};

static void fail(struct run *run, size_t item, enum status status)
{
    run->status = status;
    run->failed = item;
    run->failed_at = clock_monotonic();
}

/* --- answers -------------------------------------------------------------- */

/* A key column tells which row it was; values of others may be private. */
static enum status row_changed(const struct db_table *table,
                               const struct db_value *row, struct diag *diag)
{
    for (size_t i = 0; row != NULL && i < table->ncolumns; i++) {
        if (table->columns[i].role == DB_KEY && row[i].type == DB_TEXT)
            return diag_set(diag, STATUS_CONFLICT,
                            "the row \"" TEXT_FORMAT
                            "\" of table %s was changed by somebody else",
                            TEXT_ARGS(row[i].as.text), table->name);
    }
    return diag_set(diag, STATUS_CONFLICT,
                    "a row of table %s was changed by somebody else",
                    table->name);
}

static enum status check_rows(struct run *run, const struct sent *sent,
                              int64_t affected)
{
    const struct db_queued *item = &run->queue[sent->item];

    if (sent->expect == DB_ANY_ROWS || affected == sent->expect)
        return STATUS_OK;
    if (item->bulk)
        return row_changed(item->table, sent->row, run->diag);
    return diag_set(run->diag, STATUS_CONFLICT,
                    "a statement touched %" PRId64 " rows instead of %" PRId64
                    ": somebody else changed them",
                    affected, sent->expect);
}

/* "column cannot be null" of a key is how an upsert that hit another unique
 * key is kept from changing that row. */
static void explain_upsert(const struct db_queued *item, unsigned code,
                           struct diag *diag)
{
    if (item->bulk && item->what == DB_UPSERT && code == ER_BAD_NULL_ERROR)
        (void)diag_wrap(diag,
                        "an upsert met another row of table %s that has the "
                        "same value of a unique column, or a key is null",
                        item->table->name);
}

static void take_answer(struct run *run, const struct sent *sent)
{
    MYSQL *handle = run->session->handle;
    enum status status;

    if (mysql_read_query_result(handle) != 0) {
        unsigned code = mysql_errno(handle);

        if (run->status != STATUS_OK)
            return; /* what follows the first failure tells nothing */
        status = mysql_fault_handle(run->session, run->diag);
        explain_upsert(&run->queue[sent->item], code, run->diag);
    } else if (mysql_field_count(handle) > 0) {
        run->session->broken = true; /* rows that nobody can read now */
        status = diag_set(run->diag, STATUS_PERMANENT,
                          "a queued statement gave rows");
    } else if (run->status == STATUS_OK) {
        status = check_rows(run, sent, (int64_t)mysql_affected_rows(handle));
    } else {
        return;
    }
    if (status != STATUS_OK)
        fail(run, sent->item, status);
}

/*
 * What is under way behind a failure may take as long again, each statement of
 * it: when a lock was waited for in vain (mysql_fault gives up by itself) or
 * the time limit was met. Behind a deadlock the locks are free, or soon.
 */
static bool gives_up(const struct run *run)
{
    if (run->status == STATUS_OK)
        return false;
    return run->status == STATUS_FAILED ||
           clock_monotonic() - run->failed_at >=
               run->session->busy_timeout + CLOCK_SECOND;
}

/*
 * Reads what is unanswered. What was sent behind a deadlock began a transaction
 * of its own and is rolled back with it. A connection that is given up the
 * server rolls back.
 */
static void drain(struct run *run)
{
    struct db_session *session = run->session;
    size_t answered = 0;

    if (run->nsent > 0)
        session->round_trips++;
    while (answered < run->nsent && !session->broken) {
        session->unanswered = run->nsent - answered - 1;
        take_answer(run, &run->sent[answered++]);
        if (answered < run->nsent && gives_up(run))
            session->broken = true;
    }
    for (size_t i = 0; i < run->nsent; i++) {
        bool again = false;

        for (size_t j = 0; j < i; j++)
            again = again || run->sent[j].statement == run->sent[i].statement;
        if (!again)
            mysql_cache_give(session, run->sent[i].statement);
    }
    run->nsent = 0;
    session->unanswered = 0;
}

/* --- sending -------------------------------------------------------------- */

/* A statement that is under way already, one from the cache, or a new one, for
 * which nothing may be unanswered. */
static enum status take(struct run *run, const struct db_sql *sql,
                        struct mysql_statement **statement)
{
    for (size_t i = run->nsent; i > 0; i--) {
        struct mysql_statement *at = run->sent[i - 1].statement;

        if (at->hash == sql->hash && at->origin == sql->origin &&
            text_equal(at->text, sql->text)) {
            *statement = at;
            return STATUS_OK;
        }
    }
    *statement = mysql_cache_find(run->session, sql);
    if (*statement != NULL)
        return STATUS_OK;
    drain(run);
    if (run->status != STATUS_OK)
        return run->status;
    return mysql_cache_take(run->session, sql, statement, run->diag);
}

/* Given back unless it is under way. */
static void untake(struct run *run, struct mysql_statement *statement)
{
    for (size_t i = 0; i < run->nsent; i++) {
        if (run->sent[i].statement == statement)
            return;
    }
    mysql_cache_give(run->session, statement);
}

static enum status send(struct run *run, const struct sent *sent)
{
    struct db_session *session = run->session;
    MYSQL_STMT *stmt = sent->statement->handle;
    my_bool on = 1, off = 0;
    enum status status = STATUS_OK;

    session->touched = true;
    (void)mysql_options(session->handle, MARIADB_OPT_SKIP_READ_RESPONSE, &on);
    if (mysql_stmt_execute(stmt) != 0)
        status = mysql_fault_statement(session, stmt, run->diag);
    (void)mysql_options(session->handle, MARIADB_OPT_SKIP_READ_RESPONSE, &off);
    if (status != STATUS_OK) {
        session->broken = true; /* who knows how much of it has left */
        untake(run, sent->statement);
        return status;
    }
    run->sent[run->nsent++] = *sent;
    if (run->nsent == UNANSWERED_MAX)
        drain(run);
    return run->status;
}

/* A statement with a result cannot be answered out of its own call. */
static enum status run_with_result(struct run *run, size_t index,
                                   struct mysql_statement *statement)
{
    const struct db_queued *item = &run->queue[index];
    const struct sent sent = {.item = index, .expect = item->expect};
    int64_t affected;
    enum status status;

    untake(run, statement);
    drain(run);
    if (run->status != STATUS_OK)
        return run->status;
    status = mysql_statement_execute(run->session, &item->sql, item->values,
                                     item->count, &affected, run->diag);
    return status == STATUS_OK ? check_rows(run, &sent, affected) : status;
}

static enum status run_statement(struct run *run, size_t index)
{
    const struct db_queued *item = &run->queue[index];
    struct sent sent = {.item = index, .expect = item->expect};
    unsigned array_size = 0;
    enum status status = take(run, &item->sql, &sent.statement);

    if (status != STATUS_OK)
        return status;
    if (sent.statement->gives_rows)
        return run_with_result(run, index, sent.statement);
    (void)mysql_stmt_attr_set(sent.statement->handle, STMT_ATTR_ARRAY_SIZE,
                              &array_size);
    status = mysql_param_bind(run->session, sent.statement, item->values,
                              item->count, run->diag);
    if (status != STATUS_OK) {
        untake(run, sent.statement);
        return status;
    }
    return send(run, &sent);
}

static enum status row_too_large(struct run *run, const struct db_table *table,
                                 uint64_t size)
{
    char what[96];

    (void)snprintf(what, sizeof(what), "a row of table %s", table->name);
    return mysql_fault_size(run->session, what, size, run->diag);
}

/* How many rows from `first` on make the next part. */
static enum status part_rows(struct run *run, const struct db_queued *item,
                             size_t first, size_t *count)
{
    uint64_t most = run->session->packet_max < PART_BYTES
                        ? run->session->packet_max
                        : PART_BYTES;
    uint64_t bytes = 0;

    *count = 0;
    while (first + *count < item->count && *count < PART_ROWS) {
        const struct db_value *row = item->values +
                                     (first + *count) * item->table->ncolumns;
        uint64_t size = 0;

        for (size_t i = 0; i < item->table->ncolumns; i++)
            size += mysql_param_size(&row[i]);
        if (size + 64 > run->session->packet_max)
            return row_too_large(run, item->table, size);
        if (*count > 0 && bytes + size > most)
            break;
        bytes += size;
        ++*count;
    }
    return STATUS_OK;
}

static enum status send_part(struct run *run, size_t index,
                             const struct db_sql *sql, size_t first,
                             size_t count, const size_t *order)
{
    const struct db_queued *item = &run->queue[index];
    size_t ncolumns = item->table->ncolumns;
    const struct db_value *rows = item->values + first * ncolumns;
    bool exact = item->what == DB_UPDATE || item->what == DB_DELETE;
    struct sent sent = {.item = index,
                        .expect = exact ? (int64_t)count : DB_ANY_ROWS,
                        .row = count == 1 ? rows : NULL};
    enum status status = take(run, sql, &sent.statement);

    if (status != STATUS_OK)
        return status;
    status = mysql_param_bind_rows(run->session, sent.statement, rows, count,
                                   ncolumns, order, run->diag);
    if (status != STATUS_OK) {
        untake(run, sent.statement);
        return status;
    }
    return send(run, &sent);
}

static enum status run_bulk(struct run *run, size_t index)
{
    const struct db_queued *item = &run->queue[index];
    struct db_session *session = run->session;
    size_t order[ORDER_MAX];
    size_t norder;
    struct db_sql sql;
    enum status status;

    if (item->table->ncolumns > ORDER_MAX)
        return diag_set(run->diag, STATUS_PERMANENT,
                        "table %s has more than %d columns", item->table->name,
                        ORDER_MAX);
    status = mysql_guard_table(item->table->name, item->table->origin,
                               session->host_tables, run->diag);
    if (status == STATUS_OK)
        status = mysql_bulk_text(session, item->what, item->table, order,
                                 &norder, run->diag);
    sql = db_sql_make(buffer_text(&session->text), item->table->origin);
    for (size_t first = 0; status == STATUS_OK && first < item->count;) {
        size_t count;

        status = part_rows(run, item, first, &count);
        if (status == STATUS_OK)
            status = send_part(run, index, &sql, first, count, order);
        first += count;
    }
    return status;
}

static bool any_of_script(const struct db_queued *queue, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum db_origin origin = queue[i].bulk ? queue[i].table->origin
                                              : queue[i].sql.origin;

        if (origin != DB_HOST)
            return true;
    }
    return false;
}

enum status mysql_queue_run(struct db_session *session,
                            const struct db_queued *queue, size_t count,
                            size_t *failed, struct diag *diag)
{
    struct run run = {.session = session,
                      .queue = queue,
                      .failed = count,
                      .status = STATUS_OK,
                      .diag = diag};
    enum db_origin origin = any_of_script(queue, count) ? DB_SCRIPT : DB_HOST;
    enum status status = STATUS_OK;

    if (session->broken)
        return diag_set(diag, STATUS_LOST,
                        "the connection to the database is lost");
    if (count > 0)
        status = mysql_connect_limit(session, origin, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count && run.status == STATUS_OK; i++) {
        status = queue[i].bulk ? run_bulk(&run, i) : run_statement(&run, i);
        if (status != STATUS_OK && run.status == STATUS_OK) {
            struct diag first = *diag;

            /* an answer that is still to come may be an earlier failure */
            drain(&run);
            if (run.status == STATUS_OK) {
                *diag = first;
                fail(&run, i, status);
            }
        }
    }
    drain(&run);
    *failed = run.failed;
    return run.status;
}
