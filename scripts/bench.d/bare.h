/*
 * Bare -- what the bare loops of scripts/bench share: errors, statements,
 * hashes, scanning of JSON text, ids. The loops do by hand, with sqlite3 only,
 * the SQL work that the host does for the bank example, and are the limit
 * that the host is measured against. They are no part of the host and trust
 * their input.
 */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BARE_BATCH      500 /* as the host's default */
#define BARE_PARTITIONS 16
#define BARE_KEY_MAX    256

/* The session of host/db/sqlite.c, so that both pay for the same safety. */
static const char *const bare_pragmas = "PRAGMA journal_mode = WAL;"
                                        "PRAGMA synchronous = FULL;"
                                        "PRAGMA foreign_keys = ON;"
                                        "PRAGMA temp_store = MEMORY;"
                                        "PRAGMA cache_size = -16384;"
                                        "PRAGMA wal_autocheckpoint = 16000;"
                                        "PRAGMA journal_size_limit = 67108864";

struct slice {
    const char *data;
    int size;
};

static inline void bare_die(const char *what, const char *why)
{
    fprintf(stderr, "bare: %s: %s\n", what, why);
    exit(1);
}

static inline sqlite3 *bare_open(const char *path)
{
    sqlite3 *db = NULL;
    char *error = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        bare_die(path, sqlite3_errmsg(db));
    if (sqlite3_exec(db, bare_pragmas, NULL, NULL, &error) != SQLITE_OK)
        bare_die(path, error);
    return db;
}

static inline sqlite3_stmt *bare_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement,
                           NULL) != SQLITE_OK)
        bare_die(sql, sqlite3_errmsg(db));
    return statement;
}

/* Runs a statement that gives no rows. */
static inline void bare_run(sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE)
        bare_die(sqlite3_sql(statement),
                 sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
}

/* Steps to the next row; false at the end, the statement is reset then. */
static inline int bare_row(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);

    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE)
        bare_die(sqlite3_sql(statement),
                 sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
    return 0;
}

static inline void bare_bind(sqlite3_stmt *statement, int place,
                             struct slice text)
{
    sqlite3_bind_text(statement, place, text.data, text.size, SQLITE_STATIC);
}

static inline struct slice bare_column(sqlite3_stmt *statement, int column)
{
    struct slice text;

    text.data = (const char *)sqlite3_column_text(statement, column);
    text.size = sqlite3_column_bytes(statement, column);
    return text;
}

static inline uint32_t bare_fnv1a(struct slice text)
{
    uint32_t hash = UINT32_C(2166136261);

    for (int i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT32_C(16777619);
    return hash;
}

/* The number after a mark such as "amount": in JSON text. */
static inline int64_t bare_number(const char *json, const char *mark)
{
    const char *found = strstr(json, mark);

    return found == NULL ? 0 : strtoll(found + strlen(mark), NULL, 10);
}

/* The text between a mark such as "iban":" and the next quote. */
static inline struct slice bare_text(const char *json, const char *mark)
{
    struct slice text = {"", 0};
    const char *found = strstr(json, mark);

    if (found == NULL)
        return text;
    text.data = found + strlen(mark);
    text.size = (int)(strchr(text.data, '"') - text.data);
    return text;
}

/* A UUIDv7 as text: the millisecond, then a counter that only rises. */
static inline void bare_uuid(char out[37])
{
    static uint64_t counter = UINT64_C(0x0123456789ab);
    static const char digits[] = "0123456789abcdef";
    struct timespec now;
    uint64_t ms, high, low;
    int at = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    counter++;
    high = ms << 16 | UINT64_C(0x7000) | (counter >> 48 & 0xfff);
    low = UINT64_C(0x8000000000000000) | (counter & UINT64_C(0xffffffffffff));
    for (int i = 0; i < 32; i++) {
        uint64_t half = i < 16 ? high : low;

        if (i == 8 || i == 12 || i == 16 || i == 20)
            out[at++] = '-';
        out[at++] = digits[half >> (60 - 4 * (i % 16)) & 15];
    }
    out[at] = '\0';
}

/* Id of the consumer that the host has registered for a projection. */
static inline void bare_consumer(sqlite3 *db, const char *projection,
                                 char out[37])
{
    sqlite3_stmt *statement = bare_prepare(
        db, "SELECT id FROM CONSUMERS WHERE consumer_name = ?1");

    sqlite3_bind_text(statement, 1, projection, -1, SQLITE_STATIC);
    if (!bare_row(statement))
        bare_die(projection, "is not registered");
    snprintf(out, 37, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
}

/* The lowest checkpoint of the consumer. */
static inline int64_t bare_checkpoint(sqlite3_stmt *checkpoints)
{
    int64_t lowest = INT64_MAX;

    while (bare_row(checkpoints)) {
        int64_t position = sqlite3_column_int64(checkpoints, 0);

        if (position < lowest)
            lowest = position;
    }
    if (lowest == INT64_MAX)
        bare_die("checkpoints", "the consumer has none");
    return lowest;
}

#define BARE_CHECKPOINT_READ                                                   \
    "SELECT position FROM CONSUMER_CHECKPOINTS"                                \
    " WHERE consumer_id = ?1 AND source_name = 'event-store'"
#define BARE_CHECKPOINT_MOVE                                                   \
    "UPDATE CONSUMER_CHECKPOINTS SET position = ?2"                            \
    " WHERE consumer_id = ?1 AND source_name = 'event-store'"

/* Moves the mark to the end of the event store. */
static inline void bare_mark(sqlite3 *db)
{
    sqlite3_stmt *statement = bare_prepare(
        db, "UPDATE HIGH_WATER_MARK_STORE SET high_water_mark ="
            " (SELECT val FROM EVENT_STORE_GLOBAL_POSITION WHERE id = 1)"
            " WHERE topic_name = 'event-store'");

    bare_run(statement);
    sqlite3_finalize(statement);
}

#endif
