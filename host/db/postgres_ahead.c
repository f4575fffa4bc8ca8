#include "db/postgres.h"

#include "base/memory.h"

static void forget(struct postgres_ahead *ahead)
{
    PQclear(ahead->result);
    mem_free(ahead->integers);
    *ahead = (struct postgres_ahead){.used = ahead->used};
}

void postgres_ahead_clear(struct db_session *session)
{
    for (size_t i = 0; i < POSTGRES_AHEAD_MAX; i++)
        forget(&session->ahead[i]);
}

void postgres_ahead_withdraw(struct db_session *session)
{
    for (size_t i = 0; i < POSTGRES_AHEAD_MAX; i++) {
        if (session->ahead[i].wanted)
            forget(&session->ahead[i]);
    }
}

static struct postgres_ahead *oldest(struct db_session *session)
{
    struct postgres_ahead *found = &session->ahead[0];

    for (size_t i = 1; i < POSTGRES_AHEAD_MAX; i++) {
        if (session->ahead[i].used < found->used)
            found = &session->ahead[i];
    }
    return found;
}

/* What a list of numbers is compared with later is the list as it was. False
 * when there are several. */
static bool keep_integers(struct postgres_ahead *ahead)
{
    for (size_t i = 0; i < ahead->nparams; i++) {
        struct db_value *param = &ahead->params[i];
        size_t count = param->as.integers.count;

        if (param->type != DB_INT64_ARRAY)
            continue;
        if (ahead->integers != NULL)
            return false;
        ahead->integers = mem_grow(NULL, count + 1, sizeof(int64_t));
        memcpy(ahead->integers, param->as.integers.items,
               count * sizeof(int64_t));
        param->as.integers.items = ahead->integers;
    }
    return true;
}

void postgres_ahead_announce(struct db_session *session,
                             const struct db_sql *sql,
                             const struct db_value *params, size_t nparams)
{
    struct postgres_ahead *ahead = oldest(session);

    if (nparams > POSTGRES_AHEAD_PARAMS || sql->origin != DB_HOST)
        return;
    forget(ahead);
    ahead->sql = *sql;
    memcpy(ahead->params, params, nparams * sizeof(*params));
    ahead->nparams = nparams;
    ahead->wanted = keep_integers(ahead);
    ahead->used = ++session->ahead_clock;
}

enum status postgres_ahead_send(struct db_session *session, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < POSTGRES_AHEAD_MAX; i++) {
        const struct postgres_ahead *ahead = &session->ahead[i];

        if (!ahead->wanted)
            continue;
        status = postgres_statement_send(session, &ahead->sql, ahead->params,
                                         ahead->nparams, DB_ANY_ROWS, i, diag);
        if (status == STATUS_OK)
            session->commands[session->ncommands - 1].sent = PG_SENT_AHEAD;
    }
    return status;
}

void postgres_ahead_answered(struct db_session *session, size_t place,
                             PGresult *result)
{
    struct postgres_ahead *ahead = &session->ahead[place];

    ahead->wanted = false;
    ahead->result = result;
    if (result == NULL)
        forget(ahead);
}

static bool same_value(const struct db_value *a, const struct db_value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case DB_NULL:
        return true;
    case DB_INT64:
        return a->as.integer == b->as.integer;
    case DB_TEXT:
        return text_equal(a->as.text, b->as.text);
    case DB_INT64_ARRAY:
        return a->as.integers.count == b->as.integers.count &&
               memcmp(a->as.integers.items, b->as.integers.items,
                      a->as.integers.count * sizeof(int64_t)) == 0;
    case DB_TEXT_ARRAY:
        return a->as.texts.items == b->as.texts.items &&
               a->as.texts.count == b->as.texts.count;
    default:
        return false;
    }
}

static bool is_for(const struct postgres_ahead *ahead, const struct db_sql *sql,
                   const struct db_value *params, size_t nparams)
{
    if (ahead->sql.hash != sql->hash || ahead->nparams != nparams ||
        !text_equal(ahead->sql.text, sql->text))
        return false;
    for (size_t i = 0; i < nparams; i++) {
        if (!same_value(&ahead->params[i], &params[i]))
            return false;
    }
    return true;
}

void postgres_ahead_none_comes(struct db_session *session)
{
    for (size_t i = 0; i < POSTGRES_AHEAD_MAX; i++) {
        if (session->ahead[i].coming)
            forget(&session->ahead[i]);
    }
}

void postgres_ahead_leave(struct db_session *session, size_t place)
{
    postgres_ahead_none_comes(session);
    session->ahead[place].wanted = false;
    session->ahead[place].coming = true;
}

bool postgres_ahead_comes(struct db_session *session, const struct db_sql *sql,
                          const struct db_value *params, size_t nparams)
{
    for (size_t i = 0; i < POSTGRES_AHEAD_MAX; i++) {
        struct postgres_ahead *ahead = &session->ahead[i];

        if (!ahead->coming || !is_for(ahead, sql, params, nparams))
            continue;
        forget(ahead);
        ahead->used = 0;
        return true;
    }
    return false;
}

PGresult *postgres_ahead_take(struct db_session *session,
                              const struct db_sql *sql,
                              const struct db_value *params, size_t nparams)
{
    if (session->in_transaction)
        return NULL;
    for (size_t i = 0; i < POSTGRES_AHEAD_MAX; i++) {
        struct postgres_ahead *ahead = &session->ahead[i];
        PGresult *result = ahead->result;

        if (result == NULL || !is_for(ahead, sql, params, nparams))
            continue;
        ahead->result = NULL;
        forget(ahead);
        ahead->used = 0; /* the first place to be used again */
        return result;
    }
    return NULL;
}
