#include "cli/stop.h"

#include "base/clock.h"

#include <string.h>
#include <unistd.h>

#define STOP_SECONDS_MAX 86400

/* A signal handler can reach nothing else. */
static volatile sig_atomic_t stop_asked;
static volatile sig_atomic_t stop_seconds; /* 0: no limit */

static void on_signal(int number)
{
    if (stop_asked)
        _exit(128 + number);
    stop_asked = 1;
    if (stop_seconds > 0)
        (void)alarm((unsigned)stop_seconds);
}

/* What is open rolls back: the process was killed, as far as a database can
 * tell. */
static void on_alarm(int number)
{
    static const char text[] =
        "moontide: the batch in hand did not end within stop_timeout and is "
        "rolled back\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)number;
    (void)written;
    _exit(1);
}

void stop_within(int64_t timeout_us)
{
    struct sigaction action;
    int64_t seconds = (timeout_us + CLOCK_SECOND - 1) / CLOCK_SECOND;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_alarm;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    stop_seconds = seconds > STOP_SECONDS_MAX ? STOP_SECONDS_MAX : (int)seconds;
}

const volatile sig_atomic_t *stop_on_signals(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    /* no SA_RESTART: a blocking read or sleep returns and sees the flag */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    return &stop_asked;
}
