#include "run/mark_watch.h"

/* The log names who keeps the mark back after a while, and then this often. */
#define BLOCKED_PATIENCE_US CLOCK_SECOND
#define BLOCKED_AGAIN_US    (30 * CLOCK_SECOND)

static void tell(struct mark_watch *watch, const struct log *log)
{
    const struct log_about about = {.topic = watch->topic};
    struct mark_detector *detector = &watch->detector;
    int64_t now = clock_monotonic();

    if (detector->repaired)
        log_write(log, LOG_WARN, &about,
                  "the sequence of positions had a wider CACHE and was set "
                  "back to CACHE 1");
    detector->repaired = false;
    if (detector->blocked[0] == '\0') {
        watch->blocked_since = 0;
        return;
    }
    if (watch->blocked_since == 0)
        watch->blocked_since = now;
    if (now - watch->blocked_since < BLOCKED_PATIENCE_US ||
        (watch->blocked_told != 0 &&
         now - watch->blocked_told < BLOCKED_AGAIN_US))
        return;
    watch->blocked_told = now;
    log_write(log, LOG_WARN, &about, "%s", detector->blocked);
}

enum status mark_watch_look(struct mark_watch *watch, struct application *app,
                            struct diag *diag)
{
    enum status status = high_water_mark_detect(app->db, app->catalog,
                                                watch->topic, &watch->detector,
                                                &watch->mark, diag);

    if (status == STATUS_OK)
        tell(watch, &app->log);
    return status;
}
