/*
 * Notify systemd -- datagrams to the service manager that started the host
 * (NOTIFY_SOCKET): ready, reloading, stopping, and the sign of life that its
 * watchdog waits for. Without such a manager all of this does nothing.
 */
#ifndef HOST_RUN_NOTIFY_SYSTEMD_H
#define HOST_RUN_NOTIFY_SYSTEMD_H

#include "base/status.h"

#include <stdint.h>

struct notify_systemd {
    int fd;              /* -1: nobody wants to know */
    int64_t watchdog_us; /* a sign of life is due so often; 0: never */
};

/** Reads the environment and takes its variables away, so that no child speaks
 * in the host's name. CONFIG when the socket's name is none. */
enum status notify_systemd_open(struct notify_systemd *notify,
                                struct diag *diag) MUST_CHECK;
/** Sends lines such as "READY=1\nSTATUS=...". A manager that does not listen
 * is not waited for. */
void notify_systemd_send(const struct notify_systemd *notify,
                         const char *format, ...) PRINTF_LIKE(2, 3);
void notify_systemd_close(struct notify_systemd *notify);

#endif
