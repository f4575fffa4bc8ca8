#include "run/wake.h"

#include "base/memory.h"
#include "db/listener.h"
#include "run/backoff.h"

#include <poll.h>

/* Who should be told and is not looks at least so often. */
#define DEAF_US CLOCK_SECOND

/* A listener that does not hear by then is begun anew. */
#define PATIENCE_US (10 * CLOCK_SECOND)

#define RETRY_FIRST_US (CLOCK_SECOND / 10)
#define RETRY_LAST_US  (10 * CLOCK_SECOND)

struct wake {
    const struct log *log;
    const char *url; /* NULL: nothing tells */
    char *channel;
    struct listener *listener; /* NULL: to be opened at `retry_at` */
    int64_t opened_at;         /* monotonic, as all times here */
    int64_t retry_at;
    struct backoff backoff;
    bool trouble_told;
};

/* Behind a pooler LISTEN would stay with a session that others use next. */
static const char *url_to_hear(const struct settings *settings)
{
    if (!settings->notify)
        return NULL;
    if (settings->notify_url[0] != '\0')
        return settings->notify_url;
    return settings->prepare ? settings->database : NULL;
}

struct wake *wake_open(const struct settings *settings, struct text channel,
                       const struct log *log)
{
    struct wake *wake = mem_alloc(sizeof(*wake));

    wake->log = log;
    wake->url = url_to_hear(settings);
    wake->channel = mem_copy_text(channel.data, channel.len);
    wake->backoff = backoff_make(RETRY_FIRST_US, RETRY_LAST_US);
    return wake;
}

void wake_close(struct wake *wake)
{
    if (wake == NULL)
        return;
    listener_close(wake->listener);
    mem_free(wake->channel);
    mem_free(wake);
}

/* --- the listener --------------------------------------------------------- */

static void give_up(struct wake *wake, int64_t now, const struct diag *diag)
{
    listener_close(wake->listener);
    wake->listener = NULL;
    wake->retry_at = now + backoff_next(&wake->backoff);
    if (!wake->trouble_told)
        log_write(wake->log, LOG_WARN, NULL,
                  "new events are not told, polling for them: %s",
                  diag->message);
    wake->trouble_told = true;
}

static void try_open(struct wake *wake, int64_t now)
{
    struct diag diag;
    enum status status = listener_open(wake->url, text_of(wake->channel),
                                       &wake->listener, &diag);

    wake->opened_at = now;
    if (status != STATUS_OK)
        give_up(wake, now, &diag);
    else if (wake->listener == NULL)
        wake->url = NULL;
}

/* All is well: the next trouble is a new one. */
static void settle(struct wake *wake)
{
    backoff_reset(&wake->backoff);
    if (wake->trouble_told)
        log_write(wake->log, LOG_INFO, NULL, "new events are told again");
    wake->trouble_told = false;
}

/* Takes what has come; true when there is something to look at. */
static bool hear(struct wake *wake, int64_t now)
{
    struct diag diag;
    bool heard = false;
    enum status status;

    if (wake->url != NULL && wake->listener == NULL && now >= wake->retry_at)
        try_open(wake, now);
    if (wake->listener == NULL)
        return false;
    status = listener_take(wake->listener, &heard, &diag);
    if (status == STATUS_OK && listener_hears(wake->listener)) {
        settle(wake);
        return heard;
    }
    if (status == STATUS_OK && now - wake->opened_at >= PATIENCE_US && !heard) {
        status = diag_set(&diag, STATUS_UNAVAILABLE,
                          "there is no answer within %d s",
                          (int)(PATIENCE_US / CLOCK_SECOND));
        heard = false;
    }
    if (status == STATUS_OK)
        return heard;
    give_up(wake, now, &diag);
    return true; /* the last ones may not have been heard */
}

/* --- waiting -------------------------------------------------------------- */

static int64_t wait_until(const struct wake *wake, int64_t until, int64_t now)
{
    bool deaf = wake->url != NULL &&
                (wake->listener == NULL || !listener_hears(wake->listener));

    return deaf && until > now + DEAF_US ? now + DEAF_US : until;
}

/* How long poll(2) may take: the listener may have to be opened before. */
static int patience_ms(const struct wake *wake, int64_t until, int64_t now)
{
    int64_t us = until - now;

    if (wake->url != NULL && wake->listener == NULL &&
        wake->retry_at - now < us)
        us = wake->retry_at - now;
    if (us <= 0)
        return 0;
    us = (us + 999) / 1000;
    return us > INT32_MAX ? INT32_MAX : (int)us;
}

bool wake_wait(struct wake *wake, int other_fd, int64_t us)
{
    int64_t now = clock_monotonic();
    int64_t until = us > INT64_MAX - now ? INT64_MAX : now + us;

    if (hear(wake, now))
        return true;
    until = wait_until(wake, until, now);
    while (now < until) {
        struct pollfd fds[] = {{.fd = -1}, {.fd = other_fd, .events = POLLIN}};
        int ready;

        if (wake->listener != NULL)
            fds[0].fd = listener_fd(wake->listener, &fds[0].events);
        ready = poll(fds, 2, patience_ms(wake, until, now));
        if (ready < 0 || fds[1].revents != 0)
            return false;
        now = clock_monotonic();
        if (hear(wake, now))
            return true;
    }
    return false;
}
