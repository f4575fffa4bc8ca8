/*
 * Event store, its parts -- what topic/append.c and topic/event_page.c share
 * of an open event store. Nothing outside this folder includes it.
 */
#ifndef HOST_TOPIC_EVENT_STORE_PARTS_H
#define HOST_TOPIC_EVENT_STORE_PARTS_H

#include "base/arena.h"
#include "base/map.h"
#include "topic/event_store.h"

/** One table that holds events, with the statements filled for it. */
struct event_table {
    char name[TABLE_NAME_MAX + 1];
    struct catalog_name fill[TABLE_COUNT + 1]; /* its name, then the others */
    struct db_table rows; /* every column; the id is the key */
    struct db_sql streams;
    struct db_sql count;
    struct db_sql census;
    struct buffer streams_text;
    struct buffer count_text;
    struct buffer census_text;
};

/** Columns of struct event_table.rows in order. */
enum event_column {
    EVENT_ID,
    EVENT_AGGREGATE_TYPE,
    EVENT_AGGREGATE_ID,
    EVENT_SEQUENCE,
    EVENT_TYPE,
    EVENT_REVISION,
    EVENT_PAYLOAD,
    EVENT_METADATA,
    EVENT_OCCURRED_AT,
    EVENT_PARTITION,
    EVENT_POSITION,
    EVENT_COLUMNS
};

/** The statement that reads a page of one set of tables; made when the set is
 * first asked for, kept until the store closes. */
struct event_page_sql {
    struct event_page_sql *next;
    bool by_aggregate; /* for one aggregate id */
    bool *wanted;      /* by table index */
    struct buffer text;
    struct db_sql sql;
};

struct event_store {
    char *dialect;
    const struct catalog *catalog;
    int partitions;
    bool mark_checked;          /* by the first append */
    struct event_table *tables; /* [0] is the shared one */
    size_t ntables;
    struct map own;         /* aggregate type -> its table */
    struct arena own_names; /* keys of `own` */
    struct event_page_sql *pages;
    struct arena scratch; /* of one append call */
    struct map scratch_streams;
    struct map scratch_ids;
};

/** Index of the table that holds the aggregate's events. */
size_t event_store_table_of(const struct event_store *store,
                            struct text aggregate_type);

/** Fills a statement for one table and appends it to `out`. */
enum status event_store_fill(const struct event_store *store, size_t table,
                             enum sql_statement statement, struct buffer *out,
                             struct diag *diag) MUST_CHECK;

#endif
