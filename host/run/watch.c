#include "run/watch.h"

#include "base/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* So long after the last change, and no later than so long after the first. */
#define QUIET_MS   40
#define AT_ONCE_MS 400

#define EVENTS                                                                 \
    (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |    \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

struct watched {
    int id; /* of inotify */
    char *folder;
    bool wanted; /* by the newest watch_folders */
};

struct watch {
    struct watch_options options;
    int fd;
    uv_poll_t poll;
    uv_timer_t timer;
    int handles;    /* that are not closed yet */
    uint64_t first; /* loop's time of the first change that is not told; 0 */
    struct watched *items;
    size_t count, capacity;
};

static void tell(uv_timer_t *timer)
{
    struct watch *watch = timer->data;

    watch->first = 0;
    watch->options.changed(watch->options.arg);
}

static void note_change(struct watch *watch)
{
    uint64_t now = uv_now(watch->options.loop);
    uint64_t wait = QUIET_MS;

    if (watch->first == 0)
        watch->first = now;
    if (now + wait > watch->first + AT_ONCE_MS)
        wait = watch->first + AT_ONCE_MS > now ? watch->first + AT_ONCE_MS - now
                                               : 0;
    (void)uv_timer_start(&watch->timer, tell, wait, 0);
}

static const struct watched *find(const struct watch *watch, int id)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->items[i].id == id)
            return &watch->items[i];
    return NULL;
}

static void take_event(struct watch *watch, const struct inotify_event *event)
{
    const struct watched *watched = find(watch, event->wd);
    const char *name = event->len > 0 ? event->name : "";

    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        note_change(watch);
        return;
    }
    if (watched == NULL || (event->mask & IN_IGNORED) != 0)
        return;
    /* a new file is one when it was written, a new folder at once */
    if ((event->mask & IN_CREATE) != 0 && (event->mask & IN_ISDIR) == 0)
        return;
    if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0)
        name = "";
    if (watch->options.wanted(watch->options.arg, watched->folder, name))
        note_change(watch);
}

static void on_events(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    _Alignas(struct inotify_event) char bytes[8192];
    ssize_t n;

    (void)events;
    while (status == 0 && (n = read(watch->fd, bytes, sizeof(bytes))) > 0) {
        for (const char *at = bytes; at < bytes + n;) {
            const struct inotify_event *event = (const void *)at;

            take_event(watch, event);
            at += sizeof(*event) + event->len;
        }
    }
}

enum status watch_open(const struct watch_options *options,
                       struct watch **watch_out, struct diag *diag)
{
    struct watch *watch;
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int failure;

    if (fd < 0)
        return diag_set(diag, STATUS_FAILED, "cannot watch folders: %s",
                        strerror(errno));
    watch = mem_alloc(sizeof(*watch));
    watch->options = *options;
    watch->fd = fd;
    (void)uv_timer_init(options->loop, &watch->timer);
    failure = uv_poll_init(options->loop, &watch->poll, fd);
    watch->timer.data = watch->poll.data = watch;
    watch->handles = failure == 0 ? 2 : 1;
    if (failure == 0)
        failure = uv_poll_start(&watch->poll, UV_READABLE, on_events);
    if (failure != 0) {
        watch_close(watch);
        return diag_set(diag, STATUS_FAILED, "cannot watch folders: %s",
                        uv_strerror(failure));
    }
    *watch_out = watch;
    return STATUS_OK;
}

static void forget(struct watch *watch, size_t i)
{
    mem_free(watch->items[i].folder);
    watch->items[i] = watch->items[--watch->count];
}

/* A folder that was put in the place of another has another id. */
static void add(struct watch *watch, const char *folder)
{
    int id = inotify_add_watch(watch->fd, folder, EVENTS);

    if (id < 0)
        return;
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->items[i].id != id)
            continue;
        if (strcmp(watch->items[i].folder, folder) != 0) { /* it was moved */
            mem_free(watch->items[i].folder);
            watch->items[i].folder = mem_copy_text(folder, strlen(folder));
        }
        watch->items[i].wanted = true;
        return;
    }
    if (watch->count == watch->capacity) {
        watch->capacity = 2 * watch->count + 8;
        watch->items = mem_grow(watch->items, watch->capacity,
                                sizeof(*watch->items));
    }
    watch->items[watch->count++] = (struct watched){
        .id = id,
        .folder = mem_copy_text(folder, strlen(folder)),
        .wanted = true,
    };
}

void watch_folders(struct watch *watch, const char *const *folders,
                   size_t count)
{
    for (size_t i = 0; i < watch->count; i++)
        watch->items[i].wanted = false;
    for (size_t i = 0; i < count; i++)
        add(watch, folders[i]);
    for (size_t i = watch->count; i-- > 0;) {
        if (watch->items[i].wanted)
            continue;
        (void)inotify_rm_watch(watch->fd, watch->items[i].id);
        forget(watch, i);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;

    if (--watch->handles > 0)
        return;
    close(watch->fd);
    while (watch->count > 0)
        forget(watch, watch->count - 1);
    mem_free(watch->items);
    mem_free(watch);
}

void watch_close(struct watch *watch)
{
    if (watch == NULL)
        return;
    if (watch->handles > 1)
        uv_close((uv_handle_t *)&watch->poll, on_closed);
    uv_close((uv_handle_t *)&watch->timer, on_closed);
}
