/*
 * Read-model table -- the bulk reads and writes of one query table and of the
 * epochs row that goes with each read model.
 */
#ifndef HOST_MODEL_READ_MODEL_TABLE_H
#define HOST_MODEL_READ_MODEL_TABLE_H

#include "base/arena.h"
#include "consumer/applier.h"
#include "db/db.h"
#include "model/declaration.h"
#include "schema/names.h"

struct read_model_update; /* model/read_model_table.c */

/** A bit per declared field; fields beyond 63 share the last bit. */
#define READ_MODEL_FIELD_BIT(i) (UINT64_C(1) << ((i) < 63 ? (i) : 63))

/** The descriptions that db_lookup and db_queue_bulk need; built once. */
struct read_model_table {
    const struct declaration *declaration;
    struct arena arena; /* owns what the tables point to */
    struct db_table lookup;
    struct db_table insert;
    struct read_model_update *updates; /* one per set of changed fields */
    struct db_table remove;
    struct db_table
        epoch; /* upserted: a row may be left from a dropped table */
    const struct db_sql *epochs_delete;
    const struct db_sql *epochs_read;
    const struct db_sql *epochs_stale;
    const struct db_sql *epochs_held; /* the same, of undelivered messages */
    struct text projection;           /* its name */
};

/** One read model to write. */
struct read_model_row {
    struct text key;
    struct uuid message_id;        /* of this apply */
    struct uuid read_id;           /* the message_id that was read */
    uint64_t changed;              /* UPDATE: the fields to write */
    struct text state;             /* JSON */
    const struct db_value *fields; /* one per declared field */
    int64_t epoch;                 /* of a read model that is created */
    bool made_anew;                /* UPDATE: of one that counted as absent */
    bool found;                    /* for the caller's own use */
};

/** What a batch does to the table. */
enum read_model_write {
    READ_MODEL_INSERT,
    READ_MODEL_UPDATE,
    READ_MODEL_DELETE,
};

void read_model_table_init(struct read_model_table *table,
                           const struct declaration *declaration,
                           const struct names *names,
                           const struct catalog *catalog);
void read_model_table_free(struct read_model_table *table);

/** Takes the declared fields of a looked-up row (columns message_id, state,
 * then the fields) into `fields`; bytes go to `arena`. *unknown gets a bit for
 * each field whose stored value cannot be compared. */
void read_model_table_take(const struct read_model_table *table,
                           struct db_rows *row, struct arena *arena,
                           struct db_value *fields, uint64_t *unknown);

/** Bits of the fields in which two rows differ: a column that stays the same
 * is left out of the update, and so are its indexes. */
uint64_t read_model_table_changed(const struct read_model_table *table,
                                  const struct db_value *before,
                                  const struct db_value *after);

/** Receives the epoch of the key at a place of the list; not called for keys
 * that have none. */
typedef void (*read_model_epoch_fn)(void *arg, size_t index, int64_t epoch);

/** Reads under which rebuild read models were made. */
enum status read_model_table_epochs(const struct read_model_table *table,
                                    struct db *db, const struct text *keys,
                                    size_t count, read_model_epoch_fn fn,
                                    void *arg, struct diag *diag) MUST_CHECK;

/** Keys after `after` whose read models an older epoch has made, in order, up
 * to stale->limit; bytes in `arena`. */
enum status read_model_table_stale(const struct read_model_table *table,
                                   struct db *db,
                                   const struct applier_stale *stale,
                                   struct text after, struct text *keys,
                                   size_t *count, struct arena *arena,
                                   struct diag *diag) MUST_CHECK;

/** Queues the delete of the epochs of keys. */
enum status read_model_table_forget(const struct read_model_table *table,
                                    struct db *db, const struct text *keys,
                                    size_t count, struct diag *diag) MUST_CHECK;

/** Queues the rows; all bytes must live until they are sent. Memory for the
 * parameters comes from `arena`. */
enum status read_model_table_write(struct read_model_table *table,
                                   struct db *db, enum read_model_write what,
                                   const struct read_model_row *rows,
                                   size_t count, struct arena *arena,
                                   struct diag *diag) MUST_CHECK;

#endif
