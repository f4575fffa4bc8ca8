#include "topic/compaction.h"

#include "base/clock.h"
#include "base/memory.h"
#include "topic/message.h"

#include <assert.h>

/* Positions that one statement walks at most: one that plans badly, on a table
 * that was never analyzed, still ends soon. */
#define WINDOW INT64_C(20000)

/* What a statement has found to delete. */
struct batch {
    const struct compaction_policy *policy;
    int64_t *positions;
    size_t count;
    size_t rows;
    int64_t through; /* the last row that was passed */
    bool ended;      /* a row was met that must not be passed */
    int64_t began;   /* monotonic */
    int64_t waited;  /* for the transaction to begin, which is no work */
    int64_t done;    /* monotonic: all but the commit was done */
};

/* --- topics -------------------------------------------------------------- */

static enum status take_topic(void *arg, struct db_rows *row, struct diag *diag)
{
    struct compaction *compaction = arg;

    (void)diag;
    buffer_clear(&compaction->topic);
    buffer_append_text(&compaction->topic, db_get_text(row, 0));
    buffer_clear(&compaction->source);
    buffer_append_string(&compaction->source, TOPIC_READ_MODEL);
    buffer_append_text(&compaction->source, buffer_text(&compaction->topic));
    compaction->through = db_is_null(row, 1) ? COMPACTION_NEVER
                                             : db_get_int64(row, 1);
    /* without a mark nothing of it is readable yet */
    compaction->mark = db_is_null(row, 2) ? 0 : db_get_int64(row, 2);
    compaction->reached = compaction->through > 0 ? compaction->through : 0;
    compaction->swept = 0;
    return STATUS_OK;
}

enum status compaction_next(struct db *db, const struct catalog *catalog,
                            struct compaction *compaction, bool *found,
                            struct diag *diag)
{
    struct buffer before = compaction->topic;
    const struct db_value param = db_text_value(
        before.len > 0 ? buffer_text(&before) : text_of(""));
    enum status status;

    compaction->topic = BUFFER_EMPTY;
    status = db_rows_each(db, catalog_sql(catalog, SQL_COMPACTION_TOPIC),
                          &param, 1, take_topic, compaction, diag);
    *found = status == STATUS_OK && compaction->topic.len > 0;
    buffer_free(&before);
    return status;
}

void compaction_free(struct compaction *compaction)
{
    buffer_free(&compaction->topic);
    buffer_free(&compaction->source);
}

/* --- a stretch of messages ------------------------------------------------ */

static void pass(struct batch *batch, int64_t position, bool found,
                 int64_t gone)
{
    batch->rows++;
    batch->through = position;
    if (found)
        batch->positions[batch->count++] = gone;
}

static enum status take_superseded(void *arg, struct db_rows *row,
                                   struct diag *diag)
{
    struct batch *batch = arg;
    bool found = !db_is_null(row, 1);

    (void)diag;
    batch->ended |= db_get_timestamp(row, 2) >= batch->policy->before_us;
    if (!batch->ended)
        pass(batch, db_get_int64(row, 0), found,
             found ? db_get_int64(row, 1) : 0);
    return STATUS_OK;
}

static enum status take_tombstone(void *arg, struct db_rows *row,
                                  struct diag *diag)
{
    struct batch *batch = arg;
    bool tombstone = db_get_bool(row, 1);

    (void)diag;
    batch->ended |= tombstone &&
                    db_get_timestamp(row, 2) >= batch->policy->tombstones_us;
    if (!batch->ended)
        pass(batch, db_get_int64(row, 0), tombstone, db_get_int64(row, 0));
    return STATUS_OK;
}

/* Over a stretch of other topics' positions it goes in one step. */
static enum status first_after(struct db *db, const struct catalog *catalog,
                               const struct compaction *compaction,
                               int64_t after, int64_t upto, int64_t *first,
                               bool *found, struct diag *diag)
{
    const struct db_value params[] = {
        db_text_value(buffer_text(&compaction->topic)), db_integer(after),
        db_integer(upto)};

    return db_query_int64(db, catalog_sql(catalog, SQL_COMPACTION_FIRST),
                          params, 3, first, found, diag);
}

/* Reads the messages behind `after`, as many as a batch may have, and moves
 * batch->through over all of them and what lies between. */
static enum status read_batch(struct db *db, const struct catalog *catalog,
                              const struct compaction *compaction,
                              enum sql_statement statement, db_row_fn fn,
                              int64_t after, int64_t upto, struct batch *batch,
                              struct diag *diag)
{
    size_t limit = batch->policy->messages;
    int64_t end = upto - after < WINDOW ? upto : after + WINDOW;
    const struct db_value params[] = {
        db_text_value(buffer_text(&compaction->topic)), db_integer(after),
        db_integer(end), db_integer((int64_t)limit)};
    int64_t first = 0;
    bool found = true;
    enum status status;

    batch->positions = mem_alloc(limit * sizeof(*batch->positions));
    batch->through = after;
    status = db_rows_each(db, catalog_sql(catalog, statement), params, 4, fn,
                          batch, diag);
    if (status != STATUS_OK || batch->ended || batch->rows == limit)
        return status;
    batch->through = end;
    if (batch->rows == 0 && end < upto) {
        status = first_after(db, catalog, compaction, end, upto, &first, &found,
                             diag);
        batch->through = found ? first - 1 : upto;
    }
    return status;
}

/* How long a commit takes has nothing to do with the size of the batch. */
static enum status end(struct db *db, enum status status, struct batch *batch,
                       struct diag *diag)
{
    if (status == STATUS_OK)
        status = db_flush(db, NULL, diag);
    batch->done = clock_monotonic();
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    if (status != STATUS_OK)
        db_rollback(db);
    return status;
}

/* Where one writes at a time, the others that do are waited for here: that
 * costs nobody anything, and says nothing of the batch. */
static enum status begin(struct db *db, struct batch *batch, struct diag *diag)
{
    int64_t asked = clock_monotonic();
    enum status status = db_begin(db, diag);

    batch->waited = clock_monotonic() - asked;
    return status;
}

static void report_on(const struct batch *batch, int64_t upto,
                      struct compaction_report *report)
{
    int64_t now = clock_monotonic();
    int64_t began = batch->began + batch->waited;

    *report = (struct compaction_report){
        .passed = (int64_t)batch->rows,
        .deleted = (int64_t)batch->count,
        .work_us = (batch->done != 0 ? batch->done : now) - began,
        .cost_us = now - began,
        .more = !batch->ended && batch->through < upto,
    };
}

static enum status delete_all(struct db *db, const struct catalog *catalog,
                              const struct compaction *compaction,
                              const struct batch *batch, struct diag *diag)
{
    const struct db_value params[] = {
        db_text_value(buffer_text(&compaction->topic)),
        db_integers(batch->positions, batch->count)};

    if (batch->count == 0)
        return STATUS_OK;
    return db_queue(db, catalog_sql(catalog, SQL_COMPACTION_DELETE), params, 2,
                    DB_ANY_ROWS, -1, diag);
}

static enum status take_time(void *arg, struct db_rows *row, struct diag *diag)
{
    int64_t *since = arg;

    (void)diag;
    *since = db_get_timestamp(row, 2);
    return STATUS_OK;
}

enum status compaction_waiting(struct db *db, const struct catalog *catalog,
                               const struct compaction *compaction,
                               int64_t *since_us, struct diag *diag)
{
    const struct db_value params[] = {
        db_text_value(buffer_text(&compaction->topic)),
        db_integer(compaction->reached), db_integer(compaction->mark),
        db_integer(1)};

    *since_us = 0;
    return db_rows_each(db, catalog_sql(catalog, SQL_COMPACTION_TOMBSTONES),
                        params, 4, take_time, since_us, diag);
}

/* --- superseded messages ---------------------------------------------------
 */

static enum status record(struct db *db, const struct catalog *catalog,
                          const struct compaction *compaction, int64_t through,
                          struct diag *diag)
{
    const struct db_value source = db_text_value(
        buffer_text(&compaction->source));
    const struct db_value begin[] = {source, db_integer(through)};
    const struct db_value move[] = {source, db_integer(compaction->through),
                                    db_integer(through)};

    if (compaction->through == COMPACTION_NEVER)
        return db_queue(db, catalog_sql(catalog, SQL_COMPACTION_BEGIN), begin,
                        2, 1, -1, diag);
    return db_queue(db, catalog_sql(catalog, SQL_COMPACTION_MOVE), move, 3, 1,
                    -1, diag);
}

/* The progress goes first: a host that is behind meets that, and waits for
 * nothing else. */
static enum status write_superseded(struct db *db,
                                    const struct catalog *catalog,
                                    struct compaction *compaction,
                                    struct batch *batch, struct diag *diag)
{
    enum status status = begin(db, batch, diag);

    if (status != STATUS_OK)
        return status;
    status = record(db, catalog, compaction, batch->through, diag);
    if (status == STATUS_OK)
        status = delete_all(db, catalog, compaction, batch, diag);
    status = end(db, status, batch, diag);
    if (status == STATUS_OK)
        compaction->through = batch->through;
    if (status != STATUS_UNIQUE)
        return status;
    return diag_set(diag, STATUS_CONFLICT,
                    "another host has begun to compact topic %s",
                    compaction->source.data);
}

enum status compaction_step(struct db *db, const struct catalog *catalog,
                            const struct compaction_policy *policy,
                            struct compaction *compaction,
                            struct compaction_report *report, struct diag *diag)
{
    struct batch batch = {.policy = policy, .began = clock_monotonic()};
    int64_t after = compaction->reached;
    enum status status = STATUS_OK;

    assert(!db_in_transaction(db));
    *report = (struct compaction_report){.passed = 0};
    if (after < compaction->mark)
        status = read_batch(db, catalog, compaction, SQL_COMPACTION_SUPERSEDED,
                            take_superseded, after, compaction->mark, &batch,
                            diag);
    /* positions without messages of this topic are not worth a write */
    if (status == STATUS_OK && batch.rows > 0)
        status = write_superseded(db, catalog, compaction, &batch, diag);
    if (status == STATUS_OK && after < compaction->mark) {
        compaction->reached = batch.through;
        report_on(&batch, compaction->mark, report);
    }
    mem_free(batch.positions);
    return status;
}

/* --- tombstones ---------------------------------------------------------- */

static enum status take_holder(void *arg, struct db_rows *row,
                               struct diag *diag)
{
    struct compaction_holder *holder = arg;

    (void)diag;
    holder->found = true;
    buffer_append_text(&holder->type, db_get_text(row, 0));
    buffer_append_text(&holder->name, db_get_text(row, 1));
    holder->position = db_get_int64(row, 2);
    return STATUS_OK;
}

enum status compaction_slowest(struct db *db, const struct catalog *catalog,
                               struct text source,
                               struct compaction_holder *holder,
                               struct diag *diag)
{
    const struct db_value param = db_text_value(source);

    *holder = (struct compaction_holder){.found = false};
    return db_rows_each(db, catalog_sql(catalog, SQL_COMPACTION_SLOWEST),
                        &param, 1, take_holder, holder, diag);
}

void compaction_holder_free(struct compaction_holder *holder)
{
    buffer_free(&holder->type);
    buffer_free(&holder->name);
}

/* How far tombstones may go: a topic that was never compacted keeps all. One
 * that subscribes meanwhile begins with what is there, and older messages of
 * the keys are not. */
static enum status find_limit(struct db *db, const struct catalog *catalog,
                              const struct compaction *compaction,
                              int64_t *limit, struct diag *diag)
{
    struct compaction_holder holder;
    enum status status = compaction_slowest(
        db, catalog, buffer_text(&compaction->source), &holder, diag);

    *limit = compaction->through;
    if (holder.found && holder.position < *limit)
        *limit = holder.position;
    compaction_holder_free(&holder);
    return status;
}

static enum status write_swept(struct db *db, const struct catalog *catalog,
                               const struct compaction *compaction,
                               struct batch *batch, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (batch->count == 0)
        return STATUS_OK;
    status = begin(db, batch, diag);
    if (status != STATUS_OK)
        return status;
    return end(db, delete_all(db, catalog, compaction, batch, diag), batch,
               diag);
}

enum status compaction_sweep(struct db *db, const struct catalog *catalog,
                             const struct compaction_policy *policy,
                             struct compaction *compaction,
                             struct compaction_report *report,
                             struct diag *diag)
{
    struct batch batch = {.policy = policy, .began = clock_monotonic()};
    int64_t limit;
    enum status status;

    assert(!db_in_transaction(db));
    *report = (struct compaction_report){.passed = 0};
    if (policy->tombstones_us == INT64_MIN)
        return STATUS_OK;
    status = find_limit(db, catalog, compaction, &limit, diag);
    if (status != STATUS_OK || compaction->swept >= limit)
        return status;
    status = read_batch(db, catalog, compaction, SQL_COMPACTION_TOMBSTONES,
                        take_tombstone, compaction->swept, limit, &batch, diag);
    if (status == STATUS_OK)
        status = write_swept(db, catalog, compaction, &batch, diag);
    if (status == STATUS_OK) {
        compaction->swept = batch.through;
        report_on(&batch, limit, report);
    }
    mem_free(batch.positions);
    return status;
}
