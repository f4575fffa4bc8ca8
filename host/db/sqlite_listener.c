/* Watches the database's file and its log. A commit writes the log before
 * others can see it, and nothing tells when they can: what is heard comes early
 * by the time of an fsync. */
#include "base/memory.h"
#include "db/listener_kind.h"
#include "db/sqlite.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS (IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF)
#define ROOM   4096 /* bytes of events that are read at once */

struct file_listener {
    struct listener base;
    int fd;
    char *path;
    char *log_path;
    char *folder;
    int file; /* watches */
    int log;  /* -1: the log is not there yet */
    int born; /* ... and this one says when it comes; else -1 */
};

static void close_watch(struct listener *listener)
{
    struct file_listener *own = (struct file_listener *)listener;

    if (own->fd >= 0)
        (void)close(own->fd);
    mem_free(own->path);
    mem_free(own->log_path);
    mem_free(own->folder);
    mem_free(own);
}

static enum status no_watch(const char *path, struct diag *diag)
{
    return diag_set(diag, STATUS_UNAVAILABLE, "%s cannot be watched: %s", path,
                    strerror(errno));
}

static void watch_log(struct file_listener *own)
{
    own->log = inotify_add_watch(own->fd, own->log_path, EVENTS);
}

/* The folder is watched only as long as it must be: others write there, too. */
static void find_log(struct file_listener *own)
{
    watch_log(own);
    if (own->log < 0 && own->born < 0) {
        own->born = inotify_add_watch(own->fd, own->folder,
                                      IN_CREATE | IN_MOVED_TO);
        watch_log(own); /* it may have come in between */
    }
    if (own->log >= 0 && own->born >= 0) {
        (void)inotify_rm_watch(own->fd, own->born);
        own->born = -1;
    }
}

/* The log lies beside the file itself, not beside a link to it. */
static enum status find_file(struct file_listener *own, const char *path,
                             struct diag *diag)
{
    struct buffer log_path = BUFFER_EMPTY;
    char *full = realpath(path, NULL);
    size_t folder;

    if (full == NULL)
        return no_watch(path, diag);
    own->path = mem_copy_text(full, strlen(full));
    free(full);
    buffer_printf(&log_path, "%s-wal", own->path);
    own->log_path = log_path.data;
    folder = (size_t)(strrchr(own->path, '/') - own->path);
    own->folder = mem_copy_text(own->path, folder > 0 ? folder : 1);
    own->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (own->fd < 0)
        return no_watch(own->path, diag);
    own->file = inotify_add_watch(own->fd, own->path, EVENTS);
    if (own->file < 0)
        return no_watch(own->path, diag);
    find_log(own);
    return STATUS_OK;
}

static enum status open_watch(const char *url, struct text channel,
                              struct listener **listener, struct diag *diag)
{
    const char *path = sqlite_file_of(url);
    struct file_listener *own;
    enum status status;

    (void)channel;
    if (path == NULL) /* in memory: nobody else can write it */
        return STATUS_OK;
    own = mem_alloc(sizeof(*own));
    *own = (struct file_listener){
        .base.kind = &sqlite_listener, .fd = -1, .log = -1, .born = -1};
    status = find_file(own, path, diag);
    if (status != STATUS_OK) {
        close_watch(&own->base);
        return status;
    }
    *listener = &own->base;
    return STATUS_OK;
}

static int watched_fd(const struct listener *listener, short *events)
{
    *events = POLLIN;
    return ((const struct file_listener *)listener)->fd;
}

static bool hears(const struct listener *listener)
{
    const struct file_listener *own = (const struct file_listener *)listener;

    return own->log >= 0 || own->born >= 0;
}

/* One event; false when the file itself is gone. */
static bool note(struct file_listener *own, const struct inotify_event *event)
{
    bool gone = (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) !=
                0;

    if (gone && event->wd == own->log) {
        if ((event->mask & IN_IGNORED) == 0)
            (void)inotify_rm_watch(own->fd, own->log);
        own->log = -1;
    }
    return !gone || event->wd != own->file;
}

static bool note_all(struct file_listener *own, const char *bytes, size_t len)
{
    bool there = true;

    for (size_t at = 0; at + sizeof(struct inotify_event) <= len;) {
        struct inotify_event event;

        memcpy(&event, bytes + at, sizeof(event));
        there &= note(own, &event);
        at += sizeof(event) + event.len;
    }
    return there;
}

static enum status take(struct listener *listener, bool *heard,
                        struct diag *diag)
{
    struct file_listener *own = (struct file_listener *)listener;
    char bytes[ROOM];
    bool there = true;
    ssize_t got;

    while ((got = read(own->fd, bytes, sizeof(bytes))) > 0) {
        *heard = true;
        there &= note_all(own, bytes, (size_t)got);
    }
    if (!there)
        return diag_set(diag, STATUS_LOST,
                        "%s was moved or deleted while it was watched",
                        own->path);
    if (own->log < 0) {
        find_log(own);
        *heard |= own->log >= 0;
    }
    return STATUS_OK;
}

const struct listener_kind sqlite_listener = {
    .open = open_watch,
    .close = close_watch,
    .fd = watched_fd,
    .hears = hears,
    .take = take,
};
