#include "run/worker_watch.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A handler that uses the processor ends its own call at the limit, unless
 * something keeps it from that. */
#define HANDLER_GRACE_US (CLOCK_SECOND / 10)

/* A statement ends by itself after the limit: it waits for a lock, or for the
 * answer to an interruption. The worker says that it is one. */
#define WAIT_GRACE_US (8 * CLOCK_SECOND)

/* Longer between two looks, and it was the looking that stood still. */
#define BLINK_US CLOCK_SECOND

/* What the system says of a process. */
struct process_state {
    char state;  /* 'R', 'S', 'D', 'T', ...; 0: it is gone */
    int64_t cpu; /* ticks */
};

static struct process_state read_state(pid_t pid)
{
    struct process_state found = {.state = 0};
    unsigned long long user, system;
    char text[512];
    char path[64];
    char *at;
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return found;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return found;
    text[n] = '\0';
    at = strrchr(text, ')'); /* the name before it may hold anything */
    if (at == NULL || at[1] != ' ' || at[2] == '\0')
        return found;
    found.state = at[2];
    /* pgrp and so on lie between the state and the times */
    at += 3;
    for (int field = 0; field < 10 && at != NULL; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL)
        return found;
    user = strtoull(at, &at, 10);
    system = strtoull(at, NULL, 10);
    found.cpu = (int64_t)(user + system);
    return found;
}

/* Looks at a call that the last look has seen, too. */
static enum worker_life judge_call(struct worker_watch *watch, pid_t pid,
                                   const struct attempt_slot *slot, int64_t gap,
                                   const struct worker_watch_limits *limits,
                                   int64_t now)
{
    int64_t limit = limits->handler;
    const struct process_state process = read_state(pid);
    bool stopped = process.state == 'T' || process.state == 't';
    bool waits = attempt_slot_waits(slot) &&
                 (process.state == 'S' || process.state == 'D') &&
                 process.cpu == watch->cpu;
    int64_t ran;

    if (stopped || gap > BLINK_US)
        watch->excused += gap;
    watch->cpu = process.cpu;
    if (process.state != 'T')
        watch->stopped = 0; /* one that is debugged has all the time */
    else if (gap <= BLINK_US)
        watch->stopped += gap;
    if (stopped) /* it may hold the only lock that there is to write */
        return watch->stopped > limits->hung ? LIFE_HUNG : LIFE_SILENT;
    ran = now - watch->called_at - watch->excused;
    if (ran <= limit + HANDLER_GRACE_US ||
        (waits && ran <= limit + HANDLER_GRACE_US + WAIT_GRACE_US))
        return LIFE_WELL;
    return LIFE_HANDLER;
}

/* When the call began: as the slot says, if that can be. */
static int64_t call_began(int64_t started, int64_t moved_at, int64_t now)
{
    return started > now || started < moved_at ? now : started;
}

enum worker_life worker_watch_look(struct worker_watch *watch, pid_t pid,
                                   const struct attempt_slot *slot,
                                   const struct worker_watch_limits *limits,
                                   int64_t now)
{
    int64_t started = attempt_slot_started_at(slot);
    int64_t ticked = attempt_slot_ticked_at(slot);
    int64_t gap = now - watch->looked_at;
    bool first = watch->looked_at == 0;

    watch->looked_at = now;
    if (first || started != watch->started_at || ticked != watch->ticked_at) {
        if (first || started != watch->started_at) {
            watch->called_at = call_began(started, watch->moved_at, now);
            watch->excused = watch->stopped = 0;
            watch->cpu = -1;
        }
        watch->started_at = started;
        watch->ticked_at = ticked;
        watch->moved_at = now;
        return LIFE_WELL;
    }
    if (started != 0)
        return judge_call(watch, pid, slot, gap, limits, now);
    if (gap > BLINK_US)
        watch->moved_at += gap;
    if (now - watch->moved_at <= limits->silent)
        return LIFE_WELL;
    return now - watch->moved_at > limits->hung ? LIFE_HUNG : LIFE_SILENT;
}
