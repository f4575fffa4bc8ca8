/*
 * Topic, its parts -- what the files of this folder share of an open topic.
 * Nothing outside this folder includes it.
 */
#ifndef HOST_TOPIC_TOPIC_PARTS_H
#define HOST_TOPIC_TOPIC_PARTS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "db/catalog.h"
#include "schema/names.h"
#include "topic/message.h"
#include "topic/topic.h"

/** One table that holds messages, with the statements filled for it. */
struct topic_table {
    char name[TABLE_NAME_MAX + 1];
    struct catalog_name fill[TABLE_COUNT + 1]; /* its name, then the others */
    struct db_table rows; /* every column; the id is the key */
    struct db_sql count;
    struct db_sql census;
    struct buffer count_text;
    struct buffer census_text;
};

/** Columns of struct topic_table.rows in order: those that all topics have,
 * then the event store's, or the capture topic's. */
enum topic_column {
    TOPIC_ID,
    TOPIC_TYPE,
    TOPIC_REVISION,
    TOPIC_PAYLOAD,
    TOPIC_METADATA,
    TOPIC_OCCURRED_AT,
    TOPIC_PARTITION,
    TOPIC_POSITION,
    TOPIC_COLUMNS,
    EVENT_AGGREGATE_TYPE = TOPIC_COLUMNS,
    EVENT_AGGREGATE_ID,
    EVENT_SEQUENCE,
    EVENT_COLUMNS,
    CAPTURE_KEY = TOPIC_COLUMNS,
    CAPTURE_COLUMNS
};

/** The statement that reads a page of one set of tables; made when the set is
 * first asked for, kept until the topic closes. */
struct topic_page_sql {
    struct topic_page_sql *next;
    bool by_key;  /* for one key */
    bool *wanted; /* by table index */
    struct buffer text;
    struct db_sql sql;
};

/** Which table and statements a kind of topic has. */
struct topic_kind {
    const char *name;
    enum table_id table;
    enum table_id positions; /* sequence or counter */
    const struct db_column *columns;
    size_t ncolumns;
    bool deletes; /* it has retention; its pages tell the topic's start */
    bool shared;  /* its table has other topics, too: statements take a label,
                     and pages tell the depth of the cascade */
    enum sql_statement page;
    enum sql_statement page_key;
    enum sql_statement count;
    enum sql_statement census;
};

struct topic {
    const struct topic_kind *kind;
    const char *name;  /* of the kind, where there is one of it */
    const char *label; /* in the rows of a table that topics share */
    char *dialect;
    const struct catalog *catalog;
    int partitions;
    bool mark_checked;          /* by the first append */
    struct topic_table *tables; /* [0] is the shared one */
    size_t ntables;
    struct map own; /* aggregate type -> its table, where it has its own */
    struct buffer positions_text;
    struct db_sql positions; /* draws them */
    struct topic_page_sql *pages;
    struct arena scratch; /* of one append call */
    struct map scratch_ids;
};

/** Fills the statements for the tables, whose names are there. Where topics
 * share a table, name and label are, too. */
enum status topic_open(struct topic *topic, const struct topic_kind *kind,
                       const char *dialect, const struct names *names,
                       const struct catalog *catalog, int partitions,
                       struct diag *diag) MUST_CHECK;
/** Also after an open that failed. */
void topic_close(struct topic *topic);

/** Makes room for `count` tables and adds the shared one. Tables are never
 * moved: statements point into them. */
void topic_add_tables(struct topic *topic, const struct topic_kind *kind,
                      const struct names *names, size_t count);

/** Index of the table that holds the aggregate's events; of the shared one for
 * all others. */
size_t topic_table_of(const struct topic *topic, struct text aggregate_type);

/** Fills a statement for one table and appends it to `out`. */
enum status topic_fill(const struct topic *topic, size_t table,
                       enum sql_statement statement, struct buffer *out,
                       struct diag *diag) MUST_CHECK;

/** Copies a row of a page's or a stream's statement. The texts of a message
 * lie in one piece of the arena. */
void topic_message_copy(struct arena *arena, struct db_rows *rows,
                        struct message *message);

/** The same as a statement that lives as long as `text`. */
enum status topic_statement(const struct topic *topic, size_t table,
                            enum sql_statement statement, struct buffer *text,
                            struct db_sql *sql, struct diag *diag) MUST_CHECK;

#endif
