/*
 * Clock -- times are int64 microseconds since 1970 in UTC; durations are
 * int64 microseconds. Leases are judged by the database clock, never by this.
 */
#ifndef HOST_BASE_CLOCK_H
#define HOST_BASE_CLOCK_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

#define CLOCK_TEXT_SIZE 28 /* YYYY-MM-DDTHH:MM:SS.ffffffZ and a NUL */
#define CLOCK_SECOND    INT64_C(1000000)
#define CLOCK_MIN       INT64_C(-62167219200000000) /* 0000-01-01T00:00:00Z */
#define CLOCK_MAX       INT64_C(253402300799999999) /* the end of year 9999 */

/** The host's wall clock, shifted for tests (clock_offset). */
struct clock {
    int64_t offset_us;
    int64_t stands_at; /* where `stands` says so */
    bool stands;       /* for tests: time passes only by clock_advance */
};

int64_t clock_now(const struct clock *clock); /* NULL: no shift */

/** What it is by this clock when another one, such as the database's, says
 * `time_us`. */
int64_t clock_shift(const struct clock *clock, int64_t time_us);

/** Moves it on; never back. */
void clock_advance(struct clock *clock, int64_t us);

/** From here on it stands, or goes on with what has passed in the meantime. */
void clock_stand(struct clock *clock, bool stands);

/** For time limits and rates; unrelated to the wall clock. */
int64_t clock_monotonic(void);

/** YYYY-MM-DDTHH:MM:SS.ffffffZ. A time outside CLOCK_MIN to CLOCK_MAX, which
 * clock_parse never gives, is written as the nearer of the two. */
void clock_format(int64_t time_us, char out[CLOCK_TEXT_SIZE]);

/**
 * RFC 3339 with any offset, normalised to UTC. INVALID (with the reason) for
 * anything else: a leap second, more than six fractional digits that are not
 * zero, a date that does not exist.
 */
enum status clock_parse(struct text t, int64_t *time_us,
                        struct diag *diag) MUST_CHECK;

/** "250ms", "10s", "5m", "2h", "7d", "1.5s" or a bare number of seconds. */
enum status clock_parse_duration(struct text t, int64_t *us,
                                 struct diag *diag) MUST_CHECK;

/** As clock_parse_duration takes it, in the largest unit that is exact. */
#define CLOCK_DURATION_SIZE 24
void clock_format_duration(int64_t us, char out[CLOCK_DURATION_SIZE]);

/** "64MiB", "1GiB", "512KiB", "10MB", "100" (bytes). */
enum status clock_parse_size(struct text t, int64_t *bytes,
                             struct diag *diag) MUST_CHECK;

#endif
