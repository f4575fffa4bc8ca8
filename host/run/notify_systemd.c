#include "run/notify_systemd.h"

#include "base/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* WATCHDOG_USEC counts for us when WATCHDOG_PID is missing or ours. */
static int64_t watchdog_from_environment(void)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    char *end = NULL;
    long long value;

    if (usec == NULL || usec[0] == '\0')
        return 0;
    if (pid != NULL && pid[0] != '\0' && strtoll(pid, NULL, 10) != getpid())
        return 0;
    errno = 0;
    value = strtoll(usec, &end, 10);
    if (errno != 0 || *end != '\0' || value <= 0)
        return 0;
    return value / 2; /* twice within the time, as systemd advises */
}

static enum status connect_to(const char *name, int *fd_out, struct diag *diag)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    int fd;

    if ((name[0] != '/' && name[0] != '@') || len < 2 ||
        len >= sizeof(address.sun_path))
        return diag_set(diag, STATUS_CONFIG,
                        "NOTIFY_SOCKET=%s is no name of a socket; unset it, or "
                        "let systemd set it",
                        name);
    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) != 0) {
        diag_set(diag, STATUS_CONFIG, "cannot reach NOTIFY_SOCKET=%s: %s", name,
                 strerror(errno));
        if (fd >= 0)
            close(fd);
        return STATUS_CONFIG;
    }
    *fd_out = fd;
    return STATUS_OK;
}

enum status notify_systemd_open(struct notify_systemd *notify,
                                struct diag *diag)
{
    const char *name = getenv("NOTIFY_SOCKET");
    enum status status = STATUS_OK;

    *notify = (struct notify_systemd){.fd = -1};
    if (name != NULL && name[0] != '\0') {
        notify->watchdog_us = watchdog_from_environment();
        status = connect_to(name, &notify->fd, diag);
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return status;
}

void notify_systemd_send(const struct notify_systemd *notify,
                         const char *format, ...)
{
    struct buffer lines = BUFFER_EMPTY;
    va_list args;

    if (notify->fd < 0)
        return;
    va_start(args, format);
    buffer_vprintf(&lines, format, args);
    va_end(args);
    (void)!send(notify->fd, lines.data, lines.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    buffer_free(&lines);
}

void notify_systemd_close(struct notify_systemd *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}
