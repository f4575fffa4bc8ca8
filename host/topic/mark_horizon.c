#include "topic/mark_horizon.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>

/* Rounds before a mark that others move all the time is left to them. */
#define ADVANCE_ROUNDS 10
/* The locks are looked at a few times a second at most. */
#define ASK_PAUSE (CLOCK_SECOND / 4)
/* Holders that are named; one is enough to know where to look. */
#define NAMED_MAX 3
/* Two names of 63 bytes, quoted, with a dot between them. */
#define SEQUENCE_NAME_SIZE (2 * (2 * 63 + 2) + 2)

#define NOTHING_PENDING INT64_C(-1)

/* One look at the topic. */
struct watch {
    struct high_water_mark mark;
    int64_t pending_end;     /* NOTHING_PENDING */
    int64_t pending_horizon; /* with it */
    int64_t lowest;          /* transaction id in flight, or above all */
    int64_t above;           /* an id above all that ended */
    int64_t cache;
    char repaired[MARK_MOMENT_SIZE];   /* of a wider CACHE, when; "": never */
    bool left;                         /* somebody else is to move the mark */
    char sequence[SEQUENCE_NAME_SIZE]; /* as SQL takes it */
};

/* --- looking ------------------------------------------------------------- */

static enum status no_row(const char *topic, const char *what,
                          struct diag *diag)
{
    return diag_set(diag, STATUS_CONFIG,
                    "topic %s has no %s in this database; run `moontide "
                    "schema upgrade`",
                    topic, what);
}

static enum status take_watch(struct db_rows *rows, const char *topic,
                              struct watch *watch, struct diag *diag)
{
    bool more;
    enum status status = db_next(rows, &more, diag);

    if (status != STATUS_OK)
        return status;
    if (!more)
        return no_row(topic, "high-water mark", diag);
    if (db_is_null(rows, 2))
        return no_row(topic, "sequence of positions", diag);
    watch->mark.mark = db_get_int64(rows, 0);
    watch->mark.start = db_get_int64(rows, 1);
    watch->mark.end = db_get_int64(rows, 2);
    watch->pending_end = watch->pending_horizon = NOTHING_PENDING;
    if (!db_is_null(rows, 3) && !db_is_null(rows, 4)) {
        watch->pending_end = db_get_int64(rows, 3);
        watch->pending_horizon = db_get_int64(rows, 4);
    }
    watch->lowest = db_get_int64(rows, 5);
    watch->above = db_get_int64(rows, 6);
    watch->cache = db_get_int64(rows, 7);
    text_clean(db_is_null(rows, 8) ? TEXT_LITERAL("") : db_get_text(rows, 8),
               watch->repaired, sizeof(watch->repaired));
    text_clean(db_get_text(rows, 9), watch->sequence, sizeof(watch->sequence));
    watch->left = db_get_bool(rows, 10);
    return db_next(rows, &more, diag);
}

/* Each transaction that moves something is looked behind, and where the driver
 * can, the look goes along with its COMMIT. */
static void look_ahead(struct db *db, const struct catalog *catalog,
                       const char *topic, const char *owner)
{
    const struct db_value params[] = {db_string(topic), db_string(owner)};

    db_announce(db, catalog_sql(catalog, SQL_MARK_WATCH), params, 2);
}

static enum status look(struct db *db, const struct catalog *catalog,
                        const char *topic, const char *owner,
                        struct watch *watch, struct diag *diag)
{
    const struct db_value params[] = {db_string(topic), db_string(owner)};
    struct db_rows *rows;
    enum status status = db_query(db, catalog_sql(catalog, SQL_MARK_WATCH),
                                  params, 2, &rows, diag);

    if (status != STATUS_OK)
        return status;
    status = take_watch(rows, topic, watch, diag);
    db_rows_close(rows);
    return status;
}

/* A horizon that nobody here has reached is another cluster's: it is replaced,
 * not waited for. */
static bool is_waiting(const struct watch *watch)
{
    return watch->pending_end > watch->mark.mark &&
           watch->pending_horizon < watch->above &&
           watch->pending_horizon > watch->lowest;
}

/* --- naming -------------------------------------------------------------- */

static void name_row(struct db_rows *rows, struct buffer *out)
{
    if (!db_is_null(rows, 1))
        buffer_printf(out, "prepared transaction \"" TEXT_FORMAT "\"",
                      TEXT_ARGS(db_get_text(rows, 1)));
    else if (!db_is_null(rows, 0))
        buffer_printf(out, "the session with pid %" PRId64,
                      db_get_int64(rows, 0));
    else
        buffer_append_string(out, "a prepared transaction");
    if (!db_is_null(rows, 2))
        buffer_printf(out, ", user " TEXT_FORMAT,
                      TEXT_ARGS(db_get_text(rows, 2)));
    if (!db_is_null(rows, 3) && db_get_text(rows, 3).len > 0)
        buffer_printf(out, ", application " TEXT_FORMAT,
                      TEXT_ARGS(db_get_text(rows, 3)));
    if (!db_is_null(rows, 4))
        buffer_printf(out, ", open for %" PRId64 " s", db_get_int64(rows, 4));
}

/* Appends the rows' transactions or sessions; *count of them. */
static enum status name_all(struct db *db, const struct catalog *catalog,
                            enum sql_statement statement,
                            const struct db_value *params, size_t nparams,
                            size_t *count, struct buffer *out,
                            struct diag *diag)
{
    struct db_rows *rows;
    bool more = false;
    enum status status = db_query(db, catalog_sql(catalog, statement), params,
                                  nparams, &rows, diag);

    *count = 0;
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more) {
        if (++*count > NAMED_MAX)
            continue;
        buffer_append_string(out, *count > 1 ? "; " : "");
        name_row(rows, out);
    }
    db_rows_close(rows);
    if (status == STATUS_OK && *count > NAMED_MAX)
        buffer_printf(out, "; and %zu more", *count - NAMED_MAX);
    return status;
}

static enum status name_holders(struct db *db, const struct catalog *catalog,
                                const char *topic, int64_t horizon,
                                size_t *count, struct buffer *out,
                                struct diag *diag)
{
    const struct db_value params[] = {db_string(topic), db_integer(horizon)};

    return name_all(db, catalog, SQL_MARK_HOLDERS, params, 2, count, out, diag);
}

static void blocked_by_holders(const struct watch *watch, const char *holders,
                               struct buffer *out)
{
    buffer_printf(out,
                  "the high-water mark waits at %" PRId64
                  " (the end is %" PRId64
                  ") for a transaction that has drawn a position and is still "
                  "open: %s",
                  watch->mark.mark, watch->mark.end, holders);
}

static void blocked_by_cache(const struct watch *watch, const char *topic,
                             struct buffer *out)
{
    buffer_printf(out,
                  "the sequence of topic %s has CACHE %" PRId64
                  ", with which sessions hold positions back: the high-water "
                  "mark stays at %" PRId64
                  ". Run ALTER SEQUENCE %s CACHE 1; then restart every program "
                  "that appends",
                  topic, watch->cache, watch->mark.mark, watch->sequence);
}

static enum status blocked_by_sessions(struct db *db,
                                       const struct catalog *catalog,
                                       const char *topic,
                                       const struct watch *watch,
                                       struct buffer *out, struct diag *diag)
{
    const struct db_value params[] = {db_string(topic)};
    struct buffer names = BUFFER_EMPTY;
    size_t count;
    enum status status = name_all(db, catalog, SQL_MARK_SESSIONS, params, 1,
                                  &count, &names, diag);

    if (status == STATUS_OK && count > 0)
        buffer_printf(out,
                      "the sequence of topic %s had a wider CACHE, and "
                      "sessions from that time may hold positions back: the "
                      "high-water mark stays at %" PRId64
                      " until they have ended: %s",
                      topic, watch->mark.mark, names.data);
    buffer_free(&names);
    return status;
}

/* --- moving -------------------------------------------------------------- */

/* Commits, unless something has failed. */
static enum status end(struct db *db, const struct catalog *catalog,
                       const char *topic, const struct mark_detector *detector,
                       enum status status, struct diag *diag)
{
    if (status == STATUS_OK) {
        look_ahead(db, catalog, topic, detector->owner);
        status = db_commit(db, NULL, diag);
    }
    db_rollback(db);
    if (status != STATUS_OK)
        db_withdraw(db);
    return status;
}

/* The end was read before this: only now is an id taken, and only after that
 * the snapshot that is judged by it. */
static enum status pend(struct db *db, const struct catalog *catalog,
                        const char *topic, const struct mark_detector *detector,
                        const struct watch *watch, struct diag *diag)
{
    const struct db_value params[] = {
        db_string(topic), db_integer(watch->mark.mark),
        db_integer(watch->mark.end), db_string(detector->owner),
        db_integer(detector->lease_us)};
    enum status status = db_begin(db, diag);

    if (status == STATUS_OK)
        status = db_queue(db, catalog_sql(catalog, SQL_MARK_OWN), NULL, 0,
                          DB_ANY_ROWS, 0, diag);
    if (status == STATUS_OK)
        status = db_queue(db, catalog_sql(catalog, SQL_MARK_PEND), params, 5,
                          DB_ANY_ROWS, 0, diag);
    return end(db, catalog, topic, detector, status, diag);
}

static enum status settle(struct db *db, const struct catalog *catalog,
                          const char *topic,
                          const struct mark_detector *detector,
                          const struct watch *watch, struct diag *diag)
{
    const struct db_value params[] = {db_string(topic),
                                      db_integer(watch->mark.mark),
                                      db_integer(watch->pending_end),
                                      db_integer(watch->pending_horizon),
                                      db_string(detector->owner),
                                      db_integer(detector->lease_us)};
    enum status status = db_begin(db, diag);

    if (status == STATUS_OK)
        status = db_queue(db, catalog_sql(catalog, SQL_MARK_SETTLE), params, 6,
                          DB_ANY_ROWS, 0, diag);
    return end(db, catalog, topic, detector, status, diag);
}

static enum status repair(struct db *db, const struct catalog *catalog,
                          struct mark_detector *detector, struct diag *diag)
{
    enum status status = db_script(
        db, catalog_sql(catalog, SQL_MARK_REPAIR)->text, DB_HOST, diag);

    detector->repaired = status == STATUS_OK;
    return status;
}

static void set_blocked(struct mark_detector *detector,
                        const struct buffer *sentence)
{
    text_clean(buffer_text(sentence), detector->blocked,
               sizeof(detector->blocked));
}

/* Only holders of the sequence's lock matter; *again when there is none. */
static enum status ask(struct db *db, const struct catalog *catalog,
                       const char *topic, struct mark_detector *detector,
                       const struct watch *watch, bool *again,
                       struct diag *diag)
{
    struct buffer holders = BUFFER_EMPTY;
    struct buffer sentence = BUFFER_EMPTY;
    int64_t now = clock_monotonic();
    size_t count = 0;
    enum status status;

    if (detector->asked_at != 0 && now - detector->asked_at < ASK_PAUSE)
        return STATUS_OK;
    detector->asked_at = now;
    status = name_holders(db, catalog, topic, watch->pending_horizon, &count,
                          &holders, diag);
    if (status == STATUS_OK && count == 0) {
        *again = true;
        detector->asked_at = 0;
        status = settle(db, catalog, topic, detector, watch, diag);
    } else if (status == STATUS_OK) {
        blocked_by_holders(watch, holders.data, &sentence);
        set_blocked(detector, &sentence);
    }
    buffer_free(&holders);
    buffer_free(&sentence);
    return status;
}

/* Whether the sequence hands out positions in another order than it counts
 * them, or did until lately. Who is older than its repair ends one day, and
 * nobody older comes: from then on they need not be looked for. */
static enum status guard(struct db *db, const struct catalog *catalog,
                         const char *topic, struct mark_detector *detector,
                         const struct watch *watch, bool *holds,
                         struct diag *diag)
{
    struct buffer sentence = BUFFER_EMPTY;
    enum status status = STATUS_OK;

    if (watch->cache != 1)
        blocked_by_cache(watch, topic, &sentence);
    else if (strcmp(watch->repaired, detector->outlived) != 0)
        status = blocked_by_sessions(db, catalog, topic, watch, &sentence,
                                     diag);
    *holds = sentence.len > 0;
    if (status == STATUS_OK && *holds)
        set_blocked(detector, &sentence);
    else if (status == STATUS_OK)
        memcpy(detector->outlived, watch->repaired, sizeof(watch->repaired));
    buffer_free(&sentence);
    return status;
}

/* One round; *again when another look is worth it. */
static enum status round_once(struct db *db, const struct catalog *catalog,
                              const char *topic, struct mark_detector *detector,
                              const struct watch *watch, bool *again,
                              struct diag *diag)
{
    bool holds;
    enum status status;

    *again = watch->cache != 1 && detector->may_repair;
    if (*again)
        return repair(db, catalog, detector, diag);
    status = guard(db, catalog, topic, detector, watch, &holds, diag);
    if (status != STATUS_OK || holds)
        return status;
    if (is_waiting(watch))
        return ask(db, catalog, topic, detector, watch, again, diag);
    *again = true;
    return pend(db, catalog, topic, detector, watch, diag);
}

enum status mark_horizon_advance(struct db *db, const struct catalog *catalog,
                                 const char *topic,
                                 struct mark_detector *detector,
                                 struct high_water_mark *mark,
                                 struct diag *diag)
{
    struct watch watch = {.cache = 1};
    int64_t target;
    bool again = true;
    enum status status = look(db, catalog, topic, detector->owner, &watch,
                              diag);

    target = watch.mark.end;
    for (int i = 0; status == STATUS_OK && i < ADVANCE_ROUNDS; i++) {
        status = high_water_mark_check(topic, &watch.mark, diag);
        if (status != STATUS_OK)
            return status;
        detector->left = watch.left;
        if (watch.mark.mark >= target || watch.left) {
            detector->blocked[0] = '\0'; /* whoever waits tells it */
            break;
        }
        status = round_once(db, catalog, topic, detector, &watch, &again, diag);
        if (status != STATUS_OK || !again)
            break;
        status = look(db, catalog, topic, detector->owner, &watch, diag);
    }
    if (status != STATUS_OK)
        return status;
    *mark = watch.mark;
    return STATUS_OK;
}

/* --- for readers --------------------------------------------------------- */

enum status mark_horizon_held(struct db *db, const struct catalog *catalog,
                              const char *topic, bool *held, struct diag *diag)
{
    struct buffer holders = BUFFER_EMPTY;
    size_t count = 0;
    enum status status = name_holders(db, catalog, topic, INT64_MAX, &count,
                                      &holders, diag);

    *held = count > 0;
    buffer_free(&holders);
    return status;
}

enum status mark_horizon_blocker(struct db *db, const struct catalog *catalog,
                                 const char *topic, struct buffer *out,
                                 struct diag *diag)
{
    struct buffer holders = BUFFER_EMPTY;
    struct watch watch = {.cache = 1};
    size_t count = 0;
    enum status status = look(db, catalog, topic, NULL, &watch, diag);

    if (status != STATUS_OK || watch.mark.end <= watch.mark.mark)
        return status;
    if (watch.cache != 1) {
        blocked_by_cache(&watch, topic, out);
        return STATUS_OK;
    }
    if (watch.repaired[0] != '\0') {
        size_t before = out->len;

        status = blocked_by_sessions(db, catalog, topic, &watch, out, diag);
        if (status != STATUS_OK || out->len > before)
            return status;
    }
    status = name_holders(db, catalog, topic, INT64_MAX, &count, &holders,
                          diag);
    if (status == STATUS_OK && count > 0)
        blocked_by_holders(&watch, holders.data, out);
    buffer_free(&holders);
    return status;
}
