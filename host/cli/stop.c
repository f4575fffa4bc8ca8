#include "cli/stop.h"

#include <string.h>
#include <unistd.h>

/* A signal handler can reach nothing else. */
static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    if (stop_asked)
        _exit(128 + number);
    stop_asked = 1;
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
