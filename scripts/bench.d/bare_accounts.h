/*
 * Bare, accounts -- one page of the account summary in memory.
 */
#ifndef BENCH_BARE_ACCOUNTS_H
#define BENCH_BARE_ACCOUNTS_H

#include "bare.h"

#define SLOTS 2048 /* more than twice a page */

struct account {
    char key[BARE_KEY_MAX];
    int key_size; /* 0: the slot is free */
    int stored;   /* a row is there */
    int alive;    /* a row is to be there */
    int64_t row;  /* SQLite: its rowid, found once, used for the update */
    int64_t balance;
    char iban[64];
    int iban_size;
    char message_id[37]; /* as read; PostgreSQL: 16 bytes */
    /* bare_sagas.h; message_id is the id of the saga's row then */
    int64_t version; /* as read */
    int closed;      /* complete after this page */
    int changed;     /* has to be written */
};

struct page {
    struct account slots[SLOTS];
    struct account *order[BARE_BATCH];
    int count;
};

static struct page page;

static inline void keep_iban(struct account *account, struct slice iban)
{
    if (iban.size >= (int)sizeof(account->iban))
        bare_die("iban", "too long");
    memcpy(account->iban, iban.data, (size_t)iban.size);
    account->iban[iban.size] = '\0';
    account->iban_size = iban.size;
}

/* The account of this page; *fresh when it is met for the first time. */
static inline struct account *page_account(struct slice key, int *fresh)
{
    uint32_t at = bare_fnv1a(key) & (SLOTS - 1);
    struct account *account;

    *fresh = 0;
    while ((account = &page.slots[at])->key_size != 0) {
        if (account->key_size == key.size &&
            memcmp(account->key, key.data, (size_t)key.size) == 0)
            return account;
        at = (at + 1) & (SLOTS - 1);
    }
    if (key.size == 0 || key.size >= BARE_KEY_MAX)
        bare_die("key", "bad length");
    memcpy(account->key, key.data, (size_t)key.size);
    account->key_size = key.size;
    page.order[page.count++] = account;
    account->stored = account->alive = 0;
    account->balance = 0;
    account->iban_size = 0;
    account->version = 0;
    account->closed = account->changed = 0;
    *fresh = 1;
    return account;
}

static inline struct slice account_key(const struct account *account)
{
    return (struct slice){account->key, account->key_size};
}

/* A stored state, as JSON. */
static inline void account_take(struct account *account, const char *state)
{
    account->stored = account->alive = 1;
    account->balance = bare_number(state, "\"balance\":");
    keep_iban(account, bare_text(state, "\"iban\":\""));
}

static inline int account_state(const struct account *account, char out[160])
{
    return snprintf(out, 160, "{\"balance\":%lld,\"iban\":\"%s\"}",
                    (long long)account->balance, account->iban);
}

static inline void page_clear(void)
{
    for (int i = 0; i < page.count; i++)
        page.order[i]->key_size = 0;
    page.count = 0;
}

static inline void apply(struct account *account, const char *type,
                         const char *payload)
{
    const char *word = type + 8; /* after "account." */

    switch (*word) {
    case 'O':
        account->alive = 1;
        keep_iban(account, bare_text(payload, "\"iban\":\""));
        break;
    case 'D':
        account->alive = 1;
        account->balance += bare_number(payload, "\"amount\":");
        break;
    case 'W':
        account->alive = 1;
        account->balance -= bare_number(payload, "\"amount\":");
        break;
    case 'C':
        account->alive = 0;
        account->balance = 0;
        account->iban_size = 0;
        break;
    default:
        bare_die(type, "unexpected type");
    }
}

#endif
