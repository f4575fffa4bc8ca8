/*
 * Bare, accounts on PostgreSQL -- the loop of what keeps a row for each
 * account: pages of 500, the rows read together once per page, folded, and
 * written back with the checkpoints in the same transaction.
 */
#ifndef BENCH_BARE_ACCOUNTS_POSTGRES_H
#define BENCH_BARE_ACCOUNTS_POSTGRES_H

#include "bare_accounts.h"
#include "bare_postgres.h"

struct accounts_work {
    const char *consumer;
    /* A row of the statement "read", which gets the page's keys and gives in
     * its first column the place of a key, counted from 1. */
    void (*take)(struct account *account, const PGresult *rows, int row);
    void (*apply)(struct account *account, const char *type,
                  const char *payload);
    /* All accounts of the page. */
    void (*write)(PGconn *db);
};

static inline void accounts_read(PGconn *db, const struct accounts_work *work)
{
    static struct bare_array keys;
    struct bare_params params = {.count = 0};
    PGresult *rows;

    bare_array_start(&keys, OID_TEXT);
    for (int i = 0; i < page.count; i++)
        bare_array_add(&keys, account_key(page.order[i]));
    bare_array_param(&params, &keys);
    rows = bare_run(db, "read", &params);
    for (int i = 0; i < PQntuples(rows); i++)
        work->take(page.order[bare_int(rows, i, 0) - 1], rows, i);
    PQclear(rows);
}

/* Writes the rows of the arrays named by `which`, unless there are none. */
static inline void accounts_write(PGconn *db, const char *name,
                                  struct bare_array *arrays, const int *which,
                                  int count)
{
    struct bare_params params = {.count = 0};

    if (arrays[which[0]].count == 0)
        return;
    for (int i = 0; i < count; i++)
        bare_array_param(&params, &arrays[which[i]]);
    bare_change(db, name, &params, (int)arrays[which[0]].count);
}

static inline void accounts_run(PGconn *db, const struct accounts_work *work)
{
    int fresh, got;

    do {
        PGresult *events = bare_page(db, work->consumer);

        got = PQntuples(events);
        for (int i = 0; i < got; i++)
            (void)page_account(bare_column(events, i, 1), &fresh);
        if (got > 0)
            accounts_read(db, work);
        for (int i = 0; i < got; i++)
            work->apply(page_account(bare_column(events, i, 1), &fresh),
                        PQgetvalue(events, i, 2), PQgetvalue(events, i, 4));
        work->write(db);
        page_clear();
        if (got > 0)
            bare_commit(db, work->consumer, bare_int(events, got - 1, 0));
        else
            bare_do(db, "ROLLBACK");
        PQclear(events);
    } while (got > 0);
}

#endif
