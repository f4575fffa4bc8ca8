#include "run/script_child.h"

#include "run/script_check.h"
#include "run/worker.h"

#include "base/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A set of scripts has the time of one handler call for each of its files, and
 * this for all of them; a check that takes longer hangs. */
#define LOAD_US (10 * CLOCK_SECOND)

#define ARGUMENTS_MAX 8

void script_child_init(struct script_child *child, uv_loop_t *loop,
                       const struct supervisor_options *options, int config,
                       script_child_fn done, void *arg)
{
    *child = (struct script_child){
        .loop = loop,
        .options = options,
        .config = config,
        .done = done,
        .arg = arg,
        .out = -1,
    };
    (void)uv_timer_init(loop, &child->limit);
    child->limit.data = child;
}

/* --- its end -------------------------------------------------------------- */

static void fail(struct script_child *child, enum status status,
                 const char *why)
{
    if (child->failed)
        return;
    child->failed = true;
    diag_set(&child->failure, status, "%s", why);
}

static void tell(struct script_child *child)
{
    struct script_version version = {.nfiles = 0};
    struct buffer bundle = BUFFER_EMPTY;
    struct diag diag;

    if (!child->failed && !child->loaded)
        fail(child, STATUS_CONFIG,
             "the process that loaded the scripts has crashed: a script does "
             "something at its load that ends a process");
    if (!child->failed &&
        script_check_take(child->out, &version, &bundle, &diag) != STATUS_OK)
        fail(child, STATUS_FAILED, diag.message);
    close(child->out);
    child->out = -1;
    child->running = false;
    if (child->done != NULL)
        child->done(child->arg, child->failed ? &child->failure : NULL,
                    &version, buffer_text(&bundle));
    else
        script_version_free(&version);
    buffer_free(&bundle);
}

static void on_closed(uv_handle_t *handle)
{
    struct script_child *child = handle->data;

    if (--child->handles > 0)
        return;
    channel_reader_free(&child->reader);
    tell(child);
}

static void close_handles(struct script_child *child)
{
    (void)uv_timer_stop(&child->limit);
    if (child->handles > 1)
        uv_close((uv_handle_t *)&child->process, on_closed);
    uv_close((uv_handle_t *)&child->channel, on_closed);
}

static void take_bytes(struct script_child *child, const char *bytes,
                       size_t len)
{
    struct channel_message message;
    struct diag diag;
    bool found = true;

    channel_reader_add(&child->reader, bytes, len);
    while (found) {
        if (channel_reader_next(&child->reader, CHANNEL_WORKER, &message,
                                &found, &diag) != STATUS_OK) {
            fail(child, STATUS_FAILED, diag.message);
            return;
        }
        if (found && message.type == CHANNEL_LOADED)
            child->loaded = true;
        if (!found || message.type != CHANNEL_FAILED || child->failed)
            continue;
        child->failed = true;
        diag_set(&child->failure, (enum status)message.number, TEXT_FORMAT,
                 TEXT_ARGS(message.text));
    }
}

/* All that it has said is there when it has ended. */
static void on_ended(uv_process_t *process, int64_t code, int number)
{
    struct script_child *child = process->data;
    char bytes[4096];
    uv_os_fd_t fd;
    ssize_t n = 1;

    (void)code;
    while (n > 0 && uv_fileno((uv_handle_t *)&child->channel, &fd) == 0) {
        n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n > 0)
            take_bytes(child, bytes, (size_t)n);
    }
    /* no script is known to be at fault, so who starts hosts may try again */
    if (!child->loaded && (number == SIGKILL || number == SIGTERM))
        fail(child, STATUS_BUSY,
             "the process that loaded the scripts was killed by somebody, or "
             "by the system for want of memory: try again");
    close_handles(child);
}

static void on_limit(uv_timer_t *timer)
{
    struct script_child *child = timer->data;

    fail(child, STATUS_CONFIG,
         "the scripts took too long to load and were given up: a file loops, "
         "or waits for something, at its load");
    (void)uv_process_kill(&child->process, SIGKILL);
}

/* --- its start ------------------------------------------------------------ */

static int spawn(struct script_child *child)
{
    const struct supervisor_options *options = child->options;
    char self[16];
    char *arguments[ARGUMENTS_MAX] = {"moontide", "load", "--supervisor", self};
    int n = 4;
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&child->channel},
        {.flags = UV_INHERIT_FD, .data.fd = child->out},
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = child->config},
    };
    uv_process_options_t how = {
        .exit_cb = on_ended,
        .file = "/proc/self/exe",
        .args = arguments,
        .stdio = stdio,
        .stdio_count = sizeof(stdio) / sizeof(stdio[0]),
    };

    (void)snprintf(self, sizeof(self), "%d", (int)getpid());
    if (options->settings->config_path != NULL) {
        arguments[n++] = "--config";
        arguments[n++] = options->settings->config_path;
    } else {
        stdio[WORKER_CONFIG_FD] = (uv_stdio_container_t){.flags = UV_IGNORE};
    }
    return uv_spawn(child->loop, &child->process, &how);
}

void script_child_start(struct script_child *child)
{
    int64_t limit = child->options->settings->limit_time_us + LOAD_US;
    int failure = 0;

    child->running = true;
    child->loaded = child->failed = false;
    child->out = memfd_create("moontide load", MFD_CLOEXEC);
    if (child->out < 0)
        failure = uv_translate_sys_error(errno);
    (void)uv_pipe_init(child->loop, &child->channel, 0);
    child->channel.data = child->process.data = child;
    child->handles = 1;
    if (failure == 0) {
        child->handles = 2; /* the process is a handle, even if there is none */
        failure = spawn(child);
    }
    if (failure == 0) {
        (void)uv_timer_start(&child->limit, on_limit, (uint64_t)limit / 1000,
                             0);
        return;
    }
    fail(child, STATUS_FAILED, uv_strerror(failure));
    diag_wrap(&child->failure, "cannot start a process to load the scripts");
    close_handles(child);
}

void script_child_close(struct script_child *child)
{
    child->done = NULL;
    if (child->running && child->handles > 1)
        (void)uv_process_kill(&child->process, SIGKILL);
    uv_close((uv_handle_t *)&child->limit, NULL);
}
