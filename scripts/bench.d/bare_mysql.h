/*
 * Bare, MariaDB -- connection, texts of many rows and arrays of parameters with
 * libmariadb.
 */
#ifndef BENCH_BARE_MYSQL_H
#define BENCH_BARE_MYSQL_H

#include "bare.h"

#include <mysql.h>

/* --- texts --------------------------------------------------------------- */

struct bare_text {
    char *bytes;
    size_t size, capacity;
    int rows;
};

static inline void bare_reserve(struct bare_text *text, size_t more)
{
    if (text->size + more <= text->capacity)
        return;
    text->capacity = 2 * (text->size + more);
    text->bytes = realloc(text->bytes, text->capacity);
    if (text->bytes == NULL)
        bare_die("text", "out of memory");
}

static inline void bare_put(struct bare_text *text, struct slice piece)
{
    bare_reserve(text, (size_t)piece.size + 1);
    memcpy(text->bytes + text->size, piece.data, (size_t)piece.size);
    text->size += (size_t)piece.size;
}

static inline void bare_puts(struct bare_text *text, const char *piece)
{
    bare_put(text, (struct slice){piece, (int)strlen(piece)});
}

static inline void bare_put_int(struct bare_text *text, int64_t number)
{
    bare_reserve(text, 24);
    text->size += (size_t)snprintf(text->bytes + text->size, 24, "%lld",
                                   (long long)number);
}

/* A string literal: without backslash escapes only its quotes are doubled. */
static inline void bare_quote(struct bare_text *text, struct slice piece)
{
    char *at;

    bare_reserve(text, 2 * (size_t)piece.size + 3);
    at = text->bytes + text->size;
    *at++ = '\'';
    for (int i = 0; i < piece.size; i++) {
        if (piece.data[i] == '\'')
            *at++ = '\'';
        *at++ = piece.data[i];
    }
    *at++ = '\'';
    text->size = (size_t)(at - text->bytes);
}

/* --- connection ---------------------------------------------------------- */

static inline void bare_do(MYSQL *db, const char *sql)
{
    if (mysql_query(db, sql) != 0)
        bare_die(sql, mysql_error(db));
}

static inline MYSQL_RES *bare_rows(MYSQL *db, const struct bare_text *sql)
{
    MYSQL_RES *result;

    if (mysql_real_query(db, sql->bytes, sql->size) != 0 ||
        (result = mysql_store_result(db)) == NULL)
        bare_die("query", mysql_error(db));
    return result;
}

/* Runs a statement that gives no rows. */
static inline void bare_run(MYSQL *db, const struct bare_text *sql)
{
    if (mysql_real_query(db, sql->bytes, sql->size) != 0)
        bare_die("statement", mysql_error(db));
}

/* mysql://USER@HOST:PORT/DATABASE, in the session that the host has. */
static inline MYSQL *bare_open(const char *url)
{
    char user[64], host[64], name[64];
    unsigned port;
    MYSQL *db = mysql_init(NULL);

    if (sscanf(url, "mysql://%63[^@]@%63[^:]:%u/%63s", user, host, &port,
               name) != 4)
        bare_die(url, "is no URL of the bench");
    if (db == NULL || mysql_real_connect(db, host, user, NULL, name, port, NULL,
                                         CLIENT_FOUND_ROWS) == NULL)
        bare_die(url, mysql_error(db));
    bare_do(db, "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin");
    bare_do(db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    bare_do(db, "SET SESSION autocommit = 0, time_zone = '+00:00',"
                " sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'");
    return db;
}

/* --- arrays of parameters ------------------------------------------------ */

#define BARE_COLUMNS 8

/* The rows of a statement that runs once for each of them. */
struct bare_bulk {
    MYSQL_STMT *statement;
    int columns;
    unsigned rows;
    char *texts[BARE_COLUMNS][BARE_BATCH];
    unsigned long sizes[BARE_COLUMNS][BARE_BATCH];
    long long numbers[BARE_COLUMNS][BARE_BATCH];
    char is_number[BARE_COLUMNS];
};

static inline void bare_prepare(MYSQL *db, struct bare_bulk *bulk,
                                const char *sql)
{
    bulk->statement = mysql_stmt_init(db);
    if (bulk->statement == NULL ||
        mysql_stmt_prepare(bulk->statement, sql, strlen(sql)) != 0)
        bare_die(sql, mysql_error(db));
    bulk->columns = (int)mysql_stmt_param_count(bulk->statement);
}

/* Texts must live until the bulk was run. */
static inline void bare_bulk_text(struct bare_bulk *bulk, int column,
                                  const char *text, size_t size)
{
    bulk->texts[column][bulk->rows] = (char *)text;
    bulk->sizes[column][bulk->rows] = size;
    bulk->is_number[column] = 0;
}

static inline void bare_bulk_int(struct bare_bulk *bulk, int column,
                                 int64_t number)
{
    bulk->numbers[column][bulk->rows] = number;
    bulk->is_number[column] = 1;
}

/* Each row must touch exactly one. */
static inline void bare_bulk_run(MYSQL *db, struct bare_bulk *bulk)
{
    MYSQL_BIND binds[BARE_COLUMNS];

    if (bulk->rows == 0)
        return;
    memset(binds, 0, sizeof(binds));
    for (int i = 0; i < bulk->columns; i++) {
        binds[i].buffer_type = bulk->is_number[i] ? MYSQL_TYPE_LONGLONG
                                                  : MYSQL_TYPE_STRING;
        binds[i].buffer = bulk->is_number[i] ? (void *)bulk->numbers[i]
                                             : (void *)bulk->texts[i];
        binds[i].length = bulk->is_number[i] ? NULL : bulk->sizes[i];
    }
    mysql_stmt_attr_set(bulk->statement, STMT_ATTR_ARRAY_SIZE, &bulk->rows);
    if (mysql_stmt_bind_param(bulk->statement, binds) != 0 ||
        mysql_stmt_execute(bulk->statement) != 0)
        bare_die("bulk", mysql_stmt_error(bulk->statement));
    if (mysql_stmt_affected_rows(bulk->statement) != bulk->rows)
        bare_die("bulk", "rows were changed by another program");
    (void)db;
    bulk->rows = 0;
}

/* --- pages --------------------------------------------------------------- */

static inline void bare_mark(MYSQL *db)
{
    bare_do(db, "UPDATE HIGH_WATER_MARK_STORE SET high_water_mark ="
                " (SELECT val FROM EVENT_STORE_GLOBAL_POSITION WHERE id = 1)"
                " WHERE topic_name = 'event-store'");
    bare_do(db, "COMMIT");
}

#define BARE_OF_CONSUMER                                                       \
    " WHERE consumer_id = (SELECT id FROM CONSUMERS WHERE consumer_name = "

/* Begins a transaction at the consumer's checkpoint and reads its page. */
static inline MYSQL_RES *bare_page(MYSQL *db, const char *consumer)
{
    static struct bare_text sql;
    int64_t lowest = INT64_MAX;
    MYSQL_RES *result;
    MYSQL_ROW row;

    bare_do(db, "BEGIN");
    sql.size = 0;
    bare_puts(&sql,
              "SELECT position FROM CONSUMER_CHECKPOINTS" BARE_OF_CONSUMER);
    bare_quote(&sql, (struct slice){consumer, (int)strlen(consumer)});
    bare_puts(&sql, ") AND source_name = 'event-store' FOR UPDATE");
    result = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(result)) != NULL) {
        int64_t position = row[0] == NULL ? 0 : strtoll(row[0], NULL, 10);

        if (position < lowest)
            lowest = position;
    }
    mysql_free_result(result);
    if (lowest == INT64_MAX)
        bare_die(consumer, "has no checkpoints");
    sql.size = 0;
    bare_puts(&sql, "SELECT global_position, aggregate_id, event_type,"
                    " occurred_at, payload FROM EVENT_STORE"
                    " WHERE global_position > ");
    bare_put_int(&sql, lowest);
    bare_puts(&sql, " ORDER BY global_position LIMIT 500");
    return bare_rows(db, &sql);
}

static inline void bare_commit(MYSQL *db, const char *consumer,
                               int64_t position)
{
    static struct bare_text sql;

    sql.size = 0;
    bare_puts(&sql, "UPDATE CONSUMER_CHECKPOINTS SET position = ");
    bare_put_int(&sql, position);
    bare_puts(&sql, BARE_OF_CONSUMER);
    bare_quote(&sql, (struct slice){consumer, (int)strlen(consumer)});
    bare_puts(&sql, ") AND source_name = 'event-store'");
    bare_run(db, &sql);
    bare_do(db, "COMMIT");
}

static inline struct slice bare_cell(MYSQL_ROW row, const unsigned long *sizes,
                                     int column)
{
    return (struct slice){row[column], (int)sizes[column]};
}

#endif
