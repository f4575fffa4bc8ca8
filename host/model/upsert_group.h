/*
 * Upsert group -- the upserts of a batch into one table with one set of
 * columns, merged per key: a later value replaces the earlier, an addition
 * adds to it. Sent as one bulk statement.
 */
#ifndef HOST_MODEL_UPSERT_GROUP_H
#define HOST_MODEL_UPSERT_GROUP_H

#include "db/db.h"
#include "model/handler_sql.h"

struct upsert_group; /* model/upsert_group.c */

/** What a call changed in groups that were there before it. */
struct upsert_change {
    struct upsert_group *group;
    size_t row;
    bool added;   /* the row is new: undo removes it */
    size_t saved; /* place of its old values in journal->values */
};

struct upsert_journal {
    struct upsert_change *changes;
    size_t count, capacity;
    struct db_value *values;
    size_t nvalues, values_capacity;
};

void upsert_journal_clear(struct upsert_journal *journal);
/** Takes every change back, newest first, and clears the journal. */
void upsert_journal_undo(struct upsert_journal *journal);
void upsert_journal_free(struct upsert_journal *journal);

/** INVALID: a bad table or column name, or a column that is named twice. The
 * names are copied. */
enum status upsert_group_new(const char *table,
                             const struct handler_value *keys, size_t nkeys,
                             const struct handler_value *values, size_t nvalues,
                             struct upsert_group **group,
                             struct diag *diag) MUST_CHECK;
void upsert_group_free(struct upsert_group *group);

/** Whether the group is for this table and exactly these columns. */
bool upsert_group_takes(const struct upsert_group *group, const char *table,
                        const struct handler_value *keys, size_t nkeys,
                        const struct handler_value *values, size_t nvalues);

/** Whether this upsert may go out before `later`, with the rows of `earlier`,
 * and leave every row as program order does. */
bool upsert_group_may_pass(const struct upsert_group *later,
                           const struct upsert_group *earlier,
                           const struct handler_value *keys, size_t nkeys,
                           const struct handler_value *values, size_t nvalues);

/** Merges one upsert. With a journal the change can be undone. INVALID: a key
 * is NULL; a sum leaves the range; numbers and text are mixed in a sum. */
enum status upsert_group_add(struct upsert_group *group,
                             const struct handler_value *keys,
                             const struct handler_value *values,
                             struct upsert_journal *journal,
                             struct diag *diag) MUST_CHECK;

/** Queues the group's rows; it must live until they are sent. */
enum status upsert_group_queue(struct upsert_group *group, struct db *db,
                               int64_t tag, struct diag *diag) MUST_CHECK;

/** A copy of a value whose bytes live in `arena`. */
struct db_value upsert_keep_value(struct arena *arena,
                                  const struct db_value *value);

#endif
