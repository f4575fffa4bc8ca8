/*
 * High-water mark -- the position up to which every position of a topic is
 * committed or provably abandoned. Readers never read past it; it never goes
 * down. On counter dialects it follows the committed counter; where positions
 * come from a sequence it waits for the transactions that may hold one
 * (mark_horizon.h).
 */
#ifndef HOST_TOPIC_HIGH_WATER_MARK_H
#define HOST_TOPIC_HIGH_WATER_MARK_H

#include "base/buffer.h"
#include "db/catalog.h"
#include "db/db.h"

struct high_water_mark {
    int64_t mark;  /* the stored mark */
    int64_t end;   /* the committed counter, or the last position handed out */
    int64_t start; /* topic_start: all at or below it is gone */
};

#define MARK_BLOCKED_SIZE 512
#define MARK_MOMENT_SIZE  64

/** Stands for the topics of read models together: their one mark, where one
 * sequence numbers them all; else what moves when any of them moves. */
#define HIGH_WATER_MARK_READ_MODELS "read-model-topics"

/** The name under which the mark of a topic is kept, which topics of read
 * models may share. All calls below take either. */
const char *high_water_mark_of(const struct db *db, const char *topic);

/** What a detector keeps from cycle to cycle. Starts as all zero. */
struct mark_detector {
    bool may_repair;   /* the host owns the schema (schema.create) */
    const char *owner; /* who moves the mark: one at a time does, under a lease;
                          NULL: whoever comes, while nobody has the lease */
    int64_t lease_us;  /* how long it lasts from the last move on */
    bool left;         /* found: somebody else is to move the mark */
    bool repaired;     /* it set a sequence back to CACHE 1 */
    int64_t asked_at;  /* monotonic: when the locks were looked at last */
    /** When a wider CACHE was repaired whose sessions have all ended. */
    char outlived[MARK_MOMENT_SIZE];
    /** Who or what keeps the mark below the end, a sentence; "": nobody. */
    char blocked[MARK_BLOCKED_SIZE];
};

/** Reads the row of a topic. CONFIG when the topic has none. */
enum status high_water_mark_read(struct db *db, const struct catalog *catalog,
                                 const char *topic,
                                 struct high_water_mark *mark,
                                 struct diag *diag) MUST_CHECK;

/** REFUSED when the end lies below the mark: the database was restored from an
 * older copy; the message has both numbers. */
enum status high_water_mark_check(const char *topic,
                                  const struct high_water_mark *mark,
                                  struct diag *diag) MUST_CHECK;

/**
 * Reads the row and moves the mark to the end by compare-and-set, in its own
 * short transaction, when there is something to move. *mark is what holds
 * afterwards (also when another host was first).
 * REFUSED as by high_water_mark_check.
 */
enum status high_water_mark_advance(struct db *db,
                                    const struct catalog *catalog,
                                    const char *topic,
                                    struct high_water_mark *mark,
                                    struct diag *diag) MUST_CHECK;

/** The same, keeping in `detector` what the next cycle and the log need. While
 * another owner has the lease the mark is only read; detector->left tells. */
enum status high_water_mark_detect(struct db *db, const struct catalog *catalog,
                                   const char *topic,
                                   struct mark_detector *detector,
                                   struct high_water_mark *mark,
                                   struct diag *diag) MUST_CHECK;

/** Gives the leases of an owner back, of all topics. */
enum status high_water_mark_leave(struct db *db, const struct catalog *catalog,
                                  const char *owner,
                                  struct diag *diag) MUST_CHECK;

/**
 * The position up to which a reader that may not write can read: the mark, or
 * the committed end where that is as safe.
 */
int64_t high_water_mark_readable(const struct db *db,
                                 const struct high_water_mark *mark);

/** The same, looking closer: outside of a transaction, *upto is the end when
 * no transaction is open that could hold a position up to it. */
enum status high_water_mark_look(struct db *db, const struct catalog *catalog,
                                 const char *topic, int64_t *upto,
                                 struct diag *diag) MUST_CHECK;

/** Appends who keeps the mark below the end, or nothing; reads only. */
enum status high_water_mark_blocker(struct db *db,
                                    const struct catalog *catalog,
                                    const char *topic, struct buffer *out,
                                    struct diag *diag) MUST_CHECK;

#endif
