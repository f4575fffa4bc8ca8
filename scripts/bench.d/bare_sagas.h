/*
 * Bare, sagas -- one page of the account saga in memory: the accounts of
 * bare_accounts.h, whose row is that of a saga.
 */
#ifndef BENCH_BARE_SAGAS_H
#define BENCH_BARE_SAGAS_H

#include "bare_accounts.h"

#define SAGA_TYPE "account-saga"

/* A stored row; its id is the caller's to take. */
static inline void saga_take(struct account *account, int64_t version,
                             int closed, const char *state)
{
    account_take(account, state);
    account->version = version;
    account->closed = closed;
}

static inline void saga_apply(struct account *account, const char *type,
                              const char *payload)
{
    if (account->closed || (!account->alive && type[8] != 'O'))
        return;
    account->changed = 1;
    if (type[8] == 'C')
        account->closed = 1;
    else
        apply(account, type, payload);
}

#endif
