#include "run/burden_watch.h"

#define LOOK_PAUSE_US (2 * CLOCK_SECOND)
#define TOLD_AGAIN_US (300 * CLOCK_SECOND)

void burden_watch_look(struct burden_watch *watch, struct application *app)
{
    struct buffer sentence = BUFFER_EMPTY;
    int64_t now = clock_monotonic();
    bool seen;

    if (watch->looked_at != 0 && now - watch->looked_at < LOOK_PAUSE_US)
        return;
    watch->looked_at = now;
    db_burden(app->db, &sentence);
    seen = sentence.len > 0;
    if (!seen)
        watch->told_at = 0;
    /* what is gone by the second look was nobody's fault */
    if (seen && watch->seen &&
        (watch->told_at == 0 || now - watch->told_at >= TOLD_AGAIN_US)) {
        watch->told_at = now;
        log_write(&app->log, LOG_WARN, NULL, "%s", buffer_text(&sentence).data);
    }
    watch->seen = seen;
    buffer_free(&sentence);
}
