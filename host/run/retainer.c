#include "run/retainer.h"

#include "topic/message.h"

/* How often the age and number of captured events are looked at, and how late
 * that may be while consumers are busy. */
#define LOOK_PAUSE_US  (10 * CLOCK_SECOND)
#define BUSY_PATIENCE  2
#define FORCED_TOLD_US (30 * CLOCK_SECOND)

static bool events_are_due(const struct retainer *retainer,
                           const struct application *app, int64_t now,
                           bool busy)
{
    const struct retention_policy *policy = &app->settings->retention;
    int64_t age = now - retainer->looked_at;

    if (policy->max_age_us == 0 && policy->max_rows == 0)
        return false;
    if (busy)
        return age >= BUSY_PATIENCE * LOOK_PAUSE_US;
    return retainer->more_events || !retainer->looked || age >= LOOK_PAUSE_US;
}

bool retainer_is_due(const struct retainer *retainer,
                     const struct application *app, int64_t now, bool busy)
{
    return events_are_due(retainer, app, now, busy) ||
           expiry_is_due(&retainer->expiry, now, busy);
}

/* A consumer that has read on over messages that are not for it saves that when
 * it sees the topic's start above it: only who is below still at the next look
 * has lost something. One that has come since stands lower than that. */
static bool has_lost(struct retainer *retainer,
                     const struct retention_report *report, bool later)
{
    bool lost = later && retainer->passed_start > report->slowest &&
                retainer->passed_at <= report->slowest;

    if (later)
        retainer->passed_start = 0;
    if (report->passed) {
        retainer->passed_start = report->start;
        retainer->passed_at = report->slowest;
    }
    return lost || (report->passed && retainer->once);
}

static void tell_forced(struct retainer *retainer, struct application *app,
                        const struct retention_report *report)
{
    int64_t now = clock_monotonic();

    if (retainer->forced_told != 0 &&
        now - retainer->forced_told < FORCED_TOLD_US)
        return;
    retainer->forced_told = now;
    log_write(&app->log, LOG_WARN,
              &(struct log_about){.topic = TOPIC_EVENT_CAPTURE,
                                  .position = report->start},
              "deleted events that a subscribed consumer has not read (the "
              "slowest stands at %lld), as capture.force says: such a consumer "
              "is halted with MISSING_HISTORY, or marked as incomplete",
              (long long)report->slowest);
}

static enum status step_events(struct retainer *retainer,
                               struct application *app, int64_t now,
                               struct diag *diag)
{
    struct retention_report report;
    bool later = !retainer->more_events; /* than the look before */
    int64_t clock;
    enum status status = application_clock(app, &clock, diag);

    if (status == STATUS_OK)
        status = retention_step(app->db, app->catalog,
                                &app->settings->retention, clock, later,
                                &retainer->retention, &report, diag);
    if (status != STATUS_OK)
        return status;
    retainer->looked = true;
    retainer->more_events = report.more;
    if (!report.more)
        retainer->looked_at = now;
    if (has_lost(retainer, &report, later))
        tell_forced(retainer, app, &report);
    if (report.deleted > 0)
        log_write(&app->log, LOG_DEBUG,
                  &(struct log_about){.topic = TOPIC_EVENT_CAPTURE,
                                      .position = report.start},
                  "%lld events deleted", (long long)report.deleted);
    return STATUS_OK;
}

enum status retainer_step(struct retainer *retainer, struct application *app,
                          int64_t now, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (events_are_due(retainer, app, now, false))
        status = step_events(retainer, app, now, diag);
    if (status == STATUS_OK && expiry_is_due(&retainer->expiry, now, false))
        status = expiry_step(&retainer->expiry, app, now, diag);
    if (status == STATUS_OK)
        retainer->more = retainer->more_events || retainer->expiry.more;
    return status;
}
