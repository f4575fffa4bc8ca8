/*
 * Bare, sagas -- one page of the account saga in memory: the accounts of
 * bare_accounts.h, whose row is that of a saga.
 */
#ifndef BENCH_BARE_SAGAS_H
#define BENCH_BARE_SAGAS_H

#include "bare_accounts.h"

#define SAGA_TYPE "account-saga"

/* What is beside an account; message_id is the id of its row. */
struct saga {
    int64_t version; /* as read */
    int closed;      /* complete after this page */
    int changed;     /* has to be written */
};

static struct saga page_sagas[SLOTS];

static inline struct saga *saga_of(const struct account *account)
{
    return &page_sagas[account - page.slots];
}

/* The account of this page; *fresh when it is met for the first time. */
static inline struct account *page_saga(struct slice key, int *fresh)
{
    struct account *account = page_account(key, fresh);

    if (*fresh)
        *saga_of(account) = (struct saga){.version = 0};
    return account;
}

/* A stored row; its id is the caller's to take. */
static inline void saga_take(struct account *account, int64_t version,
                             int closed, const char *state)
{
    account_take(account, state);
    saga_of(account)->version = version;
    saga_of(account)->closed = closed;
}

static inline void saga_apply(struct account *account, const char *type,
                              const char *payload)
{
    struct saga *saga = saga_of(account);

    if (saga->closed || (!account->alive && type[8] != 'O'))
        return;
    saga->changed = 1;
    if (type[8] == 'C')
        saga->closed = 1;
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
