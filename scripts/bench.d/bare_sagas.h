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

/* Microseconds since 1970. */
static inline int64_t bare_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* "2026-01-31 12:00:00.000000", with another letter for the space, and an
 * end. */
static inline const char *bare_time(char between, const char *end)
{
    static char text[48];
    int64_t now = bare_now();
    time_t seconds = (time_t)(now / 1000000);
    struct tm parts;
    size_t size;

    gmtime_r(&seconds, &parts);
    size = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
    text[10] = between;
    snprintf(text + size, sizeof(text) - size, ".%06d%s", (int)(now % 1000000),
             end);
    return text;
}

#endif
