#include "run/control.h"

#include "base/digest.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG    16
#define ASKERS_MAX 32 /* at once */

struct control_asker {
    uv_poll_t poll;
    int fd;
    struct control *control;
    char line[CONTROL_LINE_MAX + 1];
    size_t len;
    struct control_asker *next; /* of those that have not asked yet */
};

struct control {
    uv_loop_t *loop;
    uv_poll_t poll;
    int fd;
    control_ask_fn ask;
    void *arg;
    struct control_asker *quiet; /* have not asked yet */
    size_t nquiet;
};

/* --- the name ------------------------------------------------------------- */

/* Abstract: it begins with a NUL, and is gone with its process. */
static socklen_t name_of(const char *app_dir, int number,
                         struct sockaddr_un *name)
{
    char real[PATH_MAX], hash[DIGEST_LEN + 1];
    struct digest digest;
    int len;

    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    digest_begin(&digest);
    digest_integer(&digest, (int64_t)getuid());
    digest_text(&digest,
                text_of(realpath(app_dir, real) != NULL ? real : app_dir));
    digest_end(&digest, hash);
    len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
                   "moontide/%s/%d", hash, number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)len);
}

/* Whoever made the other end: this user, or root. */
static bool is_friend(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == getuid() || peer.uid == 0);
}

/* --- a host --------------------------------------------------------------- */

static void asker_closed(uv_handle_t *handle)
{
    struct control_asker *asker = handle->data;

    close(asker->fd);
    mem_free(asker);
}

static void take_out(struct control_asker *asker)
{
    struct control_asker **at = &asker->control->quiet;

    while (*at != asker)
        at = &(*at)->next;
    *at = asker->next;
    asker->control->nquiet--;
}

static void hang_up(struct control_asker *asker)
{
    uv_close((uv_handle_t *)&asker->poll, asker_closed);
}

/* The answer is short, and nothing was sent before: there is room for it. */
void control_answer(struct control_asker *asker, struct text line)
{
    struct buffer out = BUFFER_EMPTY;

    buffer_append_text(&out, line);
    buffer_append_char(&out, '\n');
    (void)!send(asker->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    buffer_free(&out);
    hang_up(asker);
}

static void on_line(uv_poll_t *poll, int status, int events)
{
    struct control_asker *asker = poll->data;
    struct control *control = asker->control;
    ssize_t n = recv(asker->fd, asker->line + asker->len,
                     CONTROL_LINE_MAX - asker->len, MSG_DONTWAIT);
    char *end;

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR) && status == 0)
        return;
    if (n <= 0) {
        take_out(asker);
        hang_up(asker);
        return;
    }
    asker->len += (size_t)n;
    asker->line[asker->len] = '\0';
    end = strchr(asker->line, '\n');
    if (end == NULL && asker->len == CONTROL_LINE_MAX) {
        take_out(asker);
        hang_up(asker);
        return;
    }
    if (end == NULL)
        return;
    *end = '\0';
    (void)uv_poll_stop(&asker->poll); /* it is told when it is told */
    take_out(asker);
    control->ask(control->arg, asker, asker->line);
}

static void on_asker(uv_poll_t *poll, int status, int events)
{
    struct control *control = poll->data;
    struct control_asker *asker;
    int fd;

    (void)events;
    if (status != 0)
        return;
    fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (!is_friend(fd) || control->nquiet >= ASKERS_MAX) {
        close(fd);
        return;
    }
    asker = mem_alloc(sizeof(*asker));
    asker->fd = fd;
    asker->control = control;
    asker->poll.data = asker;
    if (uv_poll_init(control->loop, &asker->poll, fd) != 0) {
        close(fd);
        mem_free(asker);
        return;
    }
    asker->next = control->quiet;
    control->quiet = asker;
    control->nquiet++;
    (void)uv_poll_start(&asker->poll, UV_READABLE, on_line);
}

static int listen_on(const char *app_dir, struct diag *diag)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int number = 0;

    while (fd >= 0 && number < CONTROL_HOSTS_MAX) {
        struct sockaddr_un name;
        socklen_t size = name_of(app_dir, number, &name);

        if (bind(fd, (const struct sockaddr *)&name, size) == 0)
            break;
        if (errno != EADDRINUSE)
            number = CONTROL_HOSTS_MAX;
        number++;
    }
    if (fd >= 0 && number < CONTROL_HOSTS_MAX && listen(fd, BACKLOG) == 0)
        return fd;
    diag_set(diag, STATUS_FAILED,
             "`moontide reload` will not find this host: no socket for it: %s",
             number == CONTROL_HOSTS_MAX ? "too many hosts of this application"
                                         : strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

enum status control_open(uv_loop_t *loop, const char *app_dir,
                         control_ask_fn ask, void *arg,
                         struct control **control_out, struct diag *diag)
{
    struct control *control;
    int fd = listen_on(app_dir, diag);

    if (fd < 0)
        return STATUS_FAILED;
    control = mem_alloc(sizeof(*control));
    *control = (struct control){
        .loop = loop,
        .fd = fd,
        .ask = ask,
        .arg = arg,
    };
    control->poll.data = control;
    if (uv_poll_init(loop, &control->poll, fd) != 0) {
        close(fd);
        mem_free(control);
        return diag_set(diag, STATUS_FAILED, "cannot watch a socket");
    }
    (void)uv_poll_start(&control->poll, UV_READABLE, on_asker);
    *control_out = control;
    return STATUS_OK;
}

static void control_closed(uv_handle_t *handle)
{
    struct control *control = handle->data;

    close(control->fd);
    mem_free(control);
}

void control_close(struct control *control)
{
    if (control == NULL)
        return;
    while (control->quiet != NULL) {
        struct control_asker *asker = control->quiet;

        take_out(asker);
        hang_up(asker);
    }
    uv_close((uv_handle_t *)&control->poll, control_closed);
}

/* --- a verb --------------------------------------------------------------- */

/* -1: no host has this number. */
static int reach(const char *app_dir, int number)
{
    struct sockaddr_un name;
    socklen_t size = name_of(app_dir, number, &name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, size) == 0 &&
        is_friend(fd))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static enum status hear(int fd, struct buffer *answer, struct diag *diag)
{
    char bytes[4096];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), 0)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        buffer_append(answer, bytes, (size_t)n);
    }
    if (answer->len == 0 || answer->data[answer->len - 1] != '\n')
        return diag_set(diag, STATUS_FAILED,
                        "the host has ended without an answer");
    answer->data[--answer->len] = '\0';
    return STATUS_OK;
}

enum status control_ask(const char *app_dir, const char *line,
                        control_answer_fn fn, void *arg, int *hosts,
                        struct diag *diag)
{
    int fds[CONTROL_HOSTS_MAX];
    enum status status = STATUS_OK;
    struct buffer out = BUFFER_EMPTY;

    *hosts = 0;
    buffer_printf(&out, "%s\n", line);
    assert(out.len <= CONTROL_LINE_MAX);
    /* they work on it side by side */
    for (int i = 0; i < CONTROL_HOSTS_MAX; i++) {
        int fd = reach(app_dir, i);

        if (fd < 0)
            continue;
        fds[(*hosts)++] = fd;
        (void)!send(fd, out.data, out.len, MSG_NOSIGNAL);
    }
    for (int i = 0; i < *hosts; i++) {
        struct diag own;
        enum status one;

        buffer_clear(&out);
        one = hear(fds[i], &out, &own);
        if (one == STATUS_OK)
            one = fn(arg, buffer_text(&out), &own);
        if (one != STATUS_OK && status == STATUS_OK) {
            status = one;
            if (diag != NULL)
                *diag = own;
        }
        close(fds[i]);
    }
    buffer_free(&out);
    if (*hosts == 0)
        return diag_set(diag, STATUS_UNAVAILABLE,
                        "no host of this application runs on this machine; "
                        "`moontide run` starts one");
    return status;
}
