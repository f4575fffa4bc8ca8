#include "schema/seed.h"

#include "schema/fill.h"
#include "schema/schema.h"

#include <inttypes.h>

#define SEED_ROWS 6 /* that schema_seeds_read counts */

enum status seed_complete(struct db *db, const struct names *names,
                          bool *complete, struct diag *diag)
{
    int64_t rows = 0;
    bool found;
    enum status status;

    status = fill_query(db, names, SQL_SCHEMA_SEEDS_READ, &rows, &found, diag);
    if (status == STATUS_OK)
        *complete = rows == SEED_ROWS;
    return status;
}

static enum status insert_version(struct db *db, const struct names *names,
                                  struct diag *diag)
{
    int64_t version;
    int64_t now;
    bool found;
    enum status status;

    status = fill_query(db, names, SQL_SCHEMA_VERSION_READ, &version, &found,
                        diag);
    if (status != STATUS_OK || found)
        return status;
    status = db_now(db, &now, diag);
    if (status != STATUS_OK)
        return status;
    return fill_execute(
        db, names, SQL_SCHEMA_VERSION_WRITE,
        (struct db_value[]){db_integer(SCHEMA_VERSION), db_timestamp(now)}, 2,
        diag);
}

enum status seed_insert(struct db *db, const struct names *names,
                        int partitions, struct diag *diag)
{
    static const enum sql_statement counters[] = {
        SQL_SCHEMA_EVENT_COUNTER_SEED,
        SQL_SCHEMA_CAPTURE_COUNTER_SEED,
        SQL_SCHEMA_MARKS_SEED,
    };
    enum status status;

    status = insert_version(db, names, diag);
    if (status == STATUS_OK)
        status = fill_execute(db, names, SQL_SCHEMA_PARTITIONS_SEED,
                              (struct db_value[]){db_integer(partitions)}, 1,
                              diag);
    for (size_t i = 0;
         i < sizeof(counters) / sizeof(counters[0]) && status == STATUS_OK; i++)
        status = fill_execute(db, names, counters[i], NULL, 0, diag);
    return status;
}

enum status seed_check_partitions(struct db *db, const struct names *names,
                                  int partitions, struct diag *diag)
{
    int64_t stored;
    bool found;
    enum status status;

    status = fill_query(db, names, SQL_SCHEMA_PARTITIONS_READ, &stored, &found,
                        diag);
    if (status != STATUS_OK || !found || stored == partitions)
        return status;
    return diag_set(diag, STATUS_REFUSED,
                    "this database was created with %" PRId64
                    " partitions (table %s) and the configuration says %d: "
                    "the number of partitions is fixed when the schema is "
                    "created; set partitions = %" PRId64,
                    stored, names->table[TABLE_PARTITION_METADATA], partitions,
                    stored);
}

struct last_position {
    struct db *db;
    const char *shared; /* name of the shared table */
    const char *table;  /* the table with the highest position */
    int64_t position;
};

static enum status raise_last(void *arg, struct text filled, const char *table,
                              struct diag *diag)
{
    struct last_position *last = arg;
    struct db_sql sql = db_sql_make(filled, DB_HOST);
    int64_t position;
    bool found;
    enum status status;

    status = db_query_int64(last->db, &sql, NULL, 0, &position, &found, diag);
    if (status == STATUS_OK && found && position > last->position) {
        last->position = position;
        last->table = table != NULL ? table : last->shared;
    }
    return status;
}

/* The rows are read before the counter, which only rises: an append that
 * commits in between raises no false alarm. */
static enum status
check_counter(struct db *db, const struct names *names, enum table_id table,
              enum sql_statement last_position, enum table_id counter,
              enum sql_statement read_counter, struct diag *diag)
{
    struct last_position last = {.db = db, .shared = names->table[table]};
    int64_t value = 0;
    bool found;
    enum status status;

    status = fill_each(catalog_raw(db_dialect(db), last_position), names,
                       raise_last, &last, diag);
    if (status == STATUS_OK)
        status = fill_query(db, names, read_counter, &value, &found, diag);
    if (status != STATUS_OK || !found || last.position <= value)
        return status;
    return diag_set(diag, STATUS_REFUSED,
                    "the counter %s stands at %" PRId64 " but table %s holds "
                    "position %" PRId64 ", which it would hand out again: "
                    "restore both from one copy, or raise the counter to at "
                    "least %" PRId64 " while no program writes",
                    names->table[counter], value, last.table, last.position,
                    last.position);
}

/* A mark above the counter is told by whoever reads it. Read in the same order,
 * for the same reason. */
static enum status check_checkpoints(struct db *db, const struct names *names,
                                     struct diag *diag)
{
    int64_t farthest = 0;
    int64_t value = 0;
    bool found;
    enum status status;

    status = fill_query(db, names, SQL_SCHEMA_LAST_CHECKPOINT, &farthest,
                        &found, diag);
    if (status != STATUS_OK || !found)
        return status;
    status = fill_query(db, names, SQL_SCHEMA_EVENT_COUNTER_READ, &value,
                        &found, diag);
    if (status != STATUS_OK || !found || farthest <= value)
        return status;
    return diag_set(diag, STATUS_REFUSED,
                    "a consumer has come to position %" PRId64
                    " (table %s) and the counter %s stands at %" PRId64
                    ": the events are an older copy, and consumers would pass "
                    "over what is appended now; restore both from one copy, or "
                    "start the consumers anew before anything is appended",
                    farthest, names->table[TABLE_CHECKPOINTS],
                    names->table[TABLE_EVENT_STORE_POSITION], value);
}

enum status seed_check_counters(struct db *db, const struct names *names,
                                struct diag *diag)
{
    enum status status;

    status = check_counter(db, names, TABLE_EVENT_STORE, SQL_SCHEMA_LAST_EVENT,
                           TABLE_EVENT_STORE_POSITION,
                           SQL_SCHEMA_EVENT_COUNTER_READ, diag);
    if (status == STATUS_OK)
        status = check_checkpoints(db, names, diag);
    if (status != STATUS_OK)
        return status;
    return check_counter(db, names, TABLE_CAPTURE, SQL_SCHEMA_LAST_CAPTURE,
                         TABLE_CAPTURE_POSITION,
                         SQL_SCHEMA_CAPTURE_COUNTER_READ, diag);
}

static enum status check_aggregate(struct db *db, const struct names *names,
                                   const struct aggregate_tables *own,
                                   struct text filled, struct diag *diag)
{
    const struct db_sql sql = db_sql_make(filled, DB_HOST);
    const struct db_value param = db_string(own->aggregate_type);
    int64_t shared = 0;
    bool found;
    enum status status = db_query_int64(db, &sql, &param, 1, &shared, &found,
                                        diag);

    if (status != STATUS_OK || shared == 0)
        return status;
    return diag_set(diag, STATUS_REFUSED,
                    "table %s has events of '%s' already, and the "
                    "configuration gives that aggregate the table %s of its "
                    "own: its history would be split; take the aggregate out "
                    "of schema.aggregates, or move its rows to %s while no "
                    "program writes",
                    names->table[TABLE_EVENT_STORE], own->aggregate_type,
                    own->events, own->events);
}

enum status seed_check_aggregates(struct db *db, const struct names *names,
                                  struct diag *diag)
{
    struct buffer filled = BUFFER_EMPTY;
    enum status status = catalog_fill(
        catalog_raw(db_dialect(db), SQL_SCHEMA_AGGREGATE_SHARED), names->fill,
        &filled, diag);

    for (size_t i = 0; status == STATUS_OK && i < names->naggregates; i++)
        status = check_aggregate(db, names, &names->aggregates[i],
                                 buffer_text(&filled), diag);
    buffer_free(&filled);
    return status;
}
