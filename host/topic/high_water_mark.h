/*
 * High-water mark -- the position up to which every position of a topic is
 * committed or provably abandoned. Readers never read past it; it never goes
 * down. On counter dialects it follows the committed counter.
 */
#ifndef HOST_TOPIC_HIGH_WATER_MARK_H
#define HOST_TOPIC_HIGH_WATER_MARK_H

#include "db/catalog.h"
#include "db/db.h"

struct high_water_mark {
    int64_t mark;  /* the stored mark */
    int64_t end;   /* the topic's committed end (counter) */
    int64_t start; /* topic_start: all at or below it is gone */
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

/**
 * The position up to which a reader that may not write can read: the mark, or
 * the committed end where that is as safe.
 */
int64_t high_water_mark_readable(const struct db *db,
                                 const struct high_water_mark *mark);

#endif
