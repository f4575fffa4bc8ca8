#include "db/postgres.h"

#include "base/memory.h"

#include <stdio.h>

/*
 * The server plans a prepared statement a few times for its values and then
 * keeps one plan for all. One that was made while a table was small reads the
 * whole of it, however large it becomes, until somebody analyzes the table. A
 * new plan is made from the size that the table has by then, so a statement is
 * prepared anew when it has run twice as often: a table that grows with it is
 * never more than twice as large as the plan believes.
 */
#define FIRST_PLAN 16

/* The name of a place's statement on the server. */
static void name_of(int place, char out[24])
{
    (void)snprintf(out, 24, "moontide_%d", place);
}

static void forget_text(struct postgres_statement *statement)
{
    mem_free(statement->text);
    mem_free(statement->sent_text);
    mem_free(statement->types);
    *statement = (struct postgres_statement){.on_server = statement->on_server};
}

void postgres_cache_forget(struct db_session *session, int place)
{
    if (place >= 0)
        session->cache.places[place].ready = false;
}

void postgres_cache_forget_server(struct db_session *session)
{
    for (int i = 0; i < POSTGRES_CACHE_MAX; i++) {
        session->cache.places[i].on_server = false;
        session->cache.places[i].ready = false;
    }
}

void postgres_cache_clear(struct db_session *session)
{
    for (int i = 0; i < POSTGRES_CACHE_MAX; i++) {
        forget_text(&session->cache.places[i]);
        session->cache.places[i].on_server = false;
    }
}

/* Preparing is no part of the transaction: what the server did holds, also
 * when the transaction failed later. */
void postgres_cache_answered(struct db_session *session, int place,
                             enum postgres_sent sent, bool good)
{
    struct postgres_statement *statement = &session->cache.places[place];

    if (sent == PG_SENT_DEALLOCATE && good)
        statement->on_server = false;
    if (sent == PG_SENT_PREPARE) {
        statement->on_server = good;
        statement->ready = good;
    }
}

/* A type that was left open when the statement was prepared without a value
 * does for another NULL only. */
static bool same_types(const struct postgres_statement *statement,
                       const struct postgres_params *params)
{
    if (statement->nparams != params->count)
        return false;
    for (size_t i = 0; i < params->count; i++) {
        if (statement->types[i] != params->types[i] &&
            params->values[i] != NULL)
            return false;
    }
    return true;
}

static int find(struct db_session *session, const struct db_sql *sql,
                const struct postgres_params *params)
{
    for (int i = 0; i < POSTGRES_CACHE_MAX; i++) {
        const struct postgres_statement *at = &session->cache.places[i];

        if (at->text != NULL && at->hash == sql->hash &&
            at->origin == sql->origin &&
            text_equal((struct text){at->text, at->len}, sql->text) &&
            same_types(at, params))
            return i;
    }
    return -1;
}

/* The place that was not used for longest and is not part of the pipeline
 * under way; -1 when all of them are. */
static int oldest(const struct db_session *session)
{
    int found = -1;

    for (int i = 0; i < POSTGRES_CACHE_MAX; i++) {
        const struct postgres_statement *at = &session->cache.places[i];

        if (at->text == NULL && !at->on_server)
            return i;
        if (at->pipe == session->pipe)
            continue;
        if (found < 0 || at->used < session->cache.places[found].used)
            found = i;
    }
    return found;
}

static void fill(struct postgres_statement *statement, const struct db_sql *sql,
                 const struct postgres_params *params)
{
    struct buffer sent = BUFFER_EMPTY;

    forget_text(statement);
    /* scripts' texts have the server's own style already */
    if (sql->origin == DB_HOST)
        postgres_guard_number(sql->text, &sent);
    else
        buffer_append_text(&sent, sql->text);
    statement->text = mem_copy_text(sql->text.data, sql->text.len);
    statement->len = sql->text.len;
    statement->hash = sql->hash;
    statement->origin = sql->origin;
    statement->sent_text = sent.data;
    statement->plans = FIRST_PLAN;
    statement->nparams = params->count;
    statement->types = mem_alloc((params->count + 1) *
                                 sizeof(*statement->types));
    if (params->count > 0)
        memcpy(statement->types, params->types,
               params->count * sizeof(*params->types));
}

static enum status send_unnamed(struct db_session *session, const char *text,
                                const struct postgres_params *params,
                                bool binary, int place, size_t item,
                                struct diag *diag)
{
    int sent_ok = PQsendQueryParams(session->conn, text, (int)params->count,
                                    params->types, params->values,
                                    params->lengths, params->formats, binary);

    return postgres_pipe_note(session, PG_SENT_STATEMENT, place, item, sent_ok,
                              diag);
}

/* DEALLOCATE and PREPARE go out in front of the statement, in one trip. */
static enum status make_ready(struct db_session *session, int place,
                              size_t item, struct diag *diag)
{
    struct postgres_statement *statement = &session->cache.places[place];
    enum status status = STATUS_OK;
    char name[24];
    char text[48];

    name_of(place, name);
    if (statement->on_server) {
        (void)snprintf(text, sizeof(text), "DEALLOCATE %s", name);
        status = postgres_pipe_note(
            session, PG_SENT_DEALLOCATE, place, PG_NO_ITEM,
            PQsendQueryParams(session->conn, text, 0, NULL, NULL, NULL, NULL,
                              0),
            diag);
    }
    if (status == STATUS_OK)
        status = postgres_pipe_note(
            session, PG_SENT_PREPARE, place, item,
            PQsendPrepare(session->conn, name, statement->sent_text,
                          (int)statement->nparams, statement->types),
            diag);
    return status;
}

/* A text that does not find a place is sent as it is. */
static enum status send_uncached(struct db_session *session,
                                 const struct db_sql *sql,
                                 const struct postgres_params *params,
                                 bool binary, size_t item, struct diag *diag)
{
    struct postgres_statement alone = {.text = NULL};
    enum status status;

    fill(&alone, sql, params);
    status = send_unnamed(session, alone.sent_text, params, binary, -1, item,
                          diag);
    forget_text(&alone);
    return status;
}

enum status postgres_cache_send(struct db_session *session,
                                const struct db_sql *sql,
                                const struct postgres_params *params,
                                bool binary, size_t item, struct diag *diag)
{
    struct postgres_statement *statement;
    enum status status = STATUS_OK;
    int place = find(session, sql, params);
    bool fresh = place < 0;
    char name[24];

    session->origin = sql->origin;
    if (sql->text.len == 0 ||
        memchr(sql->text.data, '\0', sql->text.len) != NULL)
        return diag_set(diag, STATUS_PERMANENT,
                        "a statement is empty or holds a NUL byte");
    if (fresh) {
        status = postgres_guard_check(sql->text, sql->origin,
                                      session->host_tables, diag);
        if (status != STATUS_OK)
            return status;
        place = oldest(session);
        if (place < 0)
            return send_uncached(session, sql, params, binary, item, diag);
        fill(&session->cache.places[place], sql, params);
    }
    statement = &session->cache.places[place];
    statement->used = ++session->cache.clock;
    if (!session->prepare)
        return send_unnamed(session, statement->sent_text, params, binary,
                            place, item, diag);
    if (statement->runs++ == statement->plans) {
        statement->plans *= 2;
        if (statement->pipe != session->pipe)
            statement->ready = false;
    }
    /* prepared earlier in this pipeline, its answer is still to come */
    if (!statement->ready && (fresh || statement->pipe != session->pipe))
        status = make_ready(session, place, item, diag);
    statement->pipe = session->pipe;
    if (status != STATUS_OK)
        return status;
    name_of(place, name);
    return postgres_pipe_note(
        session, PG_SENT_STATEMENT, place, item,
        PQsendQueryPrepared(session->conn, name, (int)params->count,
                            params->values, params->lengths, params->formats,
                            binary),
        diag);
}
