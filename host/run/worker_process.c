#include "run/worker_process.h"

#include "run/supervisor_parts.h"
#include "run/worker.h"

#include "base/memory.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define RESTART_FIRST_US (20 * 1000)
#define RESTART_CAP_US   (10 * CLOCK_SECOND)

/* One that has lived so long is not in a loop of crashes. */
#define SETTLED_US (10 * CLOCK_SECOND)

/* How long a start waits for the last one's end to be recorded. */
#define BURIAL_US      (2 * CLOCK_SECOND)
#define BURIAL_LOOK_MS 5

#define ARGUMENTS_MAX 16

void worker_process_init(struct worker_process *worker,
                         struct supervisor *supervisor, int number)
{
    *worker = (struct worker_process){
        .supervisor = supervisor,
        .number = number,
        .backoff = backoff_make(RESTART_FIRST_US, RESTART_CAP_US),
        .memory = SHARED_MEMORY_NONE,
    };
    (void)uv_timer_init(&supervisor->loop, &worker->restart);
    worker->restart.data = worker;
}

bool worker_process_alive(const struct worker_process *worker)
{
    return worker->phase != WORKER_ABSENT && worker->phase != WORKER_ENDED;
}

/* --- its end ------------------------------------------------------------- */

void worker_process_kill(struct worker_process *worker, const char *why)
{
    if (!worker_process_alive(worker))
        return;
    if (why != NULL && !worker->failed) {
        worker->failed = true;
        diag_set(&worker->failure, STATUS_FAILED, "%s", why);
    }
    worker->phase = WORKER_ENDING;
    (void)uv_process_kill(&worker->process, SIGKILL);
}

bool worker_process_ended_well(const struct worker_process *worker)
{
    return worker->stopped && !worker->failed && worker->exit_signal == 0 &&
           worker->exit_code == 0;
}

void worker_process_how(const struct worker_process *worker, char *out,
                        size_t size)
{
    if (worker->failed)
        (void)snprintf(out, size, "%s", worker->failure.message);
    else if (worker->exit_signal != 0)
        (void)snprintf(out, size, "it was ended by signal %d (%s)",
                       worker->exit_signal, strsignal(worker->exit_signal));
    else
        (void)snprintf(out, size, "it exited with %lld without a word",
                       (long long)worker->exit_code);
}

bool worker_process_attempt(const struct worker_process *worker,
                            struct attempt *attempt, struct attempt_end *end)
{
    const struct settings *settings = worker->supervisor->options->settings;

    *end = (struct attempt_end){
        .hung = worker->hung,
        .limit_us = settings->limit_time_us,
        .signal = worker->exit_signal,
        .exit_code = (int)worker->exit_code,
    };
    return worker->memory.at != NULL &&
           attempt_slot_read(worker->memory.at, attempt);
}

static void on_closed(uv_handle_t *handle)
{
    struct worker_process *worker = handle->data;

    if (--worker->handles > 0)
        return;
    worker->phase = WORKER_ABSENT;
    channel_reader_free(&worker->reader);
    supervisor_worker_gone(worker->supervisor, worker);
    if (worker->phase == WORKER_ABSENT)
        shared_memory_close(&worker->memory);
}

bool worker_process_check(struct worker_process *worker,
                          const struct worker_watch_limits *limits)
{
    enum worker_life life;
    char why[160];

    if (!worker_process_alive(worker))
        return false;
    if (worker->phase == WORKER_STARTING || worker->hung)
        return !worker->hung;
    life = worker_watch_look(&worker->watch, worker->process.pid,
                             worker->memory.at, limits, clock_monotonic());
    if (life == LIFE_HANDLER) {
        worker->hung = true;
        (void)snprintf(why, sizeof(why),
                       "a handler ran longer than limits.time and could not be "
                       "stopped, so the worker was killed");
        worker_process_kill(worker, why);
    } else if (life == LIFE_HUNG) {
        (void)snprintf(why, sizeof(why),
                       "it gave no sign of life for %lld s and was killed",
                       (long long)(limits->hung / CLOCK_SECOND));
        worker_process_kill(worker, why);
    }
    return life == LIFE_WELL;
}

void worker_process_vouched(struct worker_process *worker, int64_t beaten_at)
{
    if (worker->phase != WORKER_RUNNING)
        return;
    if (worker->vouched_at == 0)
        worker->vouched_at = clock_monotonic();
    else if (beaten_at > worker->vouched_at)
        attempt_slot_vouch(worker->memory.at);
}

static void close_handles(struct worker_process *worker)
{
    worker->phase = WORKER_ENDED;
    if (worker->handles > 1)
        uv_close((uv_handle_t *)&worker->process, on_closed);
    uv_close((uv_handle_t *)&worker->channel, on_closed);
}

/* --- its channel --------------------------------------------------------- */

static void take_message(struct worker_process *worker,
                         const struct channel_message *message)
{
    switch (message->type) {
    case CHANNEL_READY:
        if (worker->phase != WORKER_STARTING || worker->ready_at != 0)
            break;
        worker->phase = WORKER_RUNNING;
        worker->ready_at = clock_monotonic();
        supervisor_worker_ready(worker->supervisor, worker, message);
        break;
    case CHANNEL_FAILED:
        if (worker->failed)
            break;
        worker->failed = true;
        diag_set(&worker->failure, (enum status)message->number, TEXT_FORMAT,
                 TEXT_ARGS(message->text));
        break;
    case CHANNEL_STOPPED:
        worker->stopped = true;
        break;
    case CHANNEL_TROUBLE:
    case CHANNEL_WELL:
        supervisor_worker_trouble(worker->supervisor, worker,
                                  message->type == CHANNEL_TROUBLE ? message
                                                                   : NULL);
        break;
    case CHANNEL_SWITCHED:
    case CHANNEL_KEPT:
        reloader_worker_answer(worker->supervisor->reloader, worker, message);
        break;
    default:
        break;
    }
}

static void take_bytes(struct worker_process *worker, const char *bytes,
                       size_t len)
{
    struct channel_message message;
    struct diag diag;
    bool found = true;

    channel_reader_add(&worker->reader, bytes, len);
    while (found) {
        if (channel_reader_next(&worker->reader, CHANNEL_WORKER, &message,
                                &found, &diag) != STATUS_OK) {
            (void)uv_read_stop((uv_stream_t *)&worker->channel);
            worker_process_kill(worker, diag.message);
            return;
        }
        if (found)
            take_message(worker, &message);
    }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *space)
{
    struct worker_process *worker = stream->data;

    if (n > 0)
        take_bytes(worker, space->base, (size_t)n);
    if (n < 0) {
        /* it is at its end already, or beyond reach: a handler may have closed
         * what was not its own */
        (void)uv_read_stop(stream);
        worker_process_kill(worker, NULL);
    }
    mem_free(space->base);
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *space)
{
    const size_t size = 4096;

    (void)handle;
    (void)suggested;
    *space = uv_buf_init(mem_alloc(size), (unsigned)size);
}

/* What it has sent before its end may not be read yet. */
static void read_rest(struct worker_process *worker)
{
    char bytes[4096];
    uv_os_fd_t fd;
    ssize_t n;

    (void)uv_read_stop((uv_stream_t *)&worker->channel);
    if (uv_fileno((uv_handle_t *)&worker->channel, &fd) != 0)
        return;
    do {
        n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n > 0)
            take_bytes(worker, bytes, (size_t)n);
    } while (n > 0);
}

struct pending_write {
    uv_write_t request;
    struct buffer frame;
};

static void on_written(uv_write_t *request, int status)
{
    struct pending_write *write = request->data;

    (void)status; /* a worker that is gone is told nothing */
    buffer_free(&write->frame);
    mem_free(write);
}

void worker_process_send(struct worker_process *worker, enum channel_type type)
{
    worker_process_tell(worker, type, 0, "");
}

void worker_process_tell(struct worker_process *worker, enum channel_type type,
                         int64_t number, const char *text)
{
    const struct channel_message message = {type, number, text_of(text)};
    uv_stream_t *stream = (uv_stream_t *)&worker->channel;
    struct pending_write *write;
    uv_buf_t bytes;

    if (!worker_process_alive(worker))
        return;
    /* one that does not read is woken by what it has not read yet */
    if (type == CHANNEL_WAKE && uv_stream_get_write_queue_size(stream) > 0)
        return;
    write = mem_alloc(sizeof(*write));
    write->request.data = write;
    channel_write(&write->frame, &message);
    bytes = uv_buf_init(write->frame.data, (unsigned)write->frame.len);
    if (uv_write(&write->request, stream, &bytes, 1, on_written) != 0)
        on_written(&write->request, 0);
}

/* --- its start ----------------------------------------------------------- */

static void on_ended(uv_process_t *process, int64_t code, int number)
{
    struct worker_process *worker = process->data;

    worker->exit_code = code;
    worker->exit_signal = number;
    read_rest(worker);
    close_handles(worker);
}

/* A random id: no two runs of a host have one in common. */
static void name_instance(struct worker_process *worker)
{
    struct uuid_source fresh = {.last_ms = 0};
    struct uuid id = uuid_v7(&fresh, clock_now(NULL));

    uuid_format(&id, worker->instance);
}

static int spawn(struct worker_process *worker)
{
    const struct supervisor_options *options = worker->supervisor->options;
    const struct reloader *reloader = worker->supervisor->reloader;
    char self[16], scripts[SCRIPT_PLACE_TEXT_SIZE];
    char *arguments[ARGUMENTS_MAX] = {
        "moontide",     "worker", "--instance", worker->instance,
        "--supervisor", self,     "--scripts",  scripts};
    int n = 8;
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDOUT_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&worker->channel},
        {.flags = UV_INHERIT_FD, .data.fd = worker->memory.fd},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = reloader_fd(reloader)},
        {.flags = UV_INHERIT_FD, .data.fd = worker->supervisor->config.fd},
    };
    uv_process_options_t how = {
        .exit_cb = on_ended,
        .file = "/proc/self/exe",
        .args = arguments,
        .stdio = stdio,
        .stdio_count = sizeof(stdio) / sizeof(stdio[0]),
    };

    (void)snprintf(self, sizeof(self), "%d", (int)getpid());
    script_place_write(reloader_place(reloader), scripts);
    memcpy(worker->scripts, reloader_place(reloader)->hash,
           sizeof(worker->scripts));
    worker->switching = false;
    if (options->settings->config_path != NULL) {
        arguments[n++] = "--config";
        arguments[n++] = options->settings->config_path;
    } else {
        stdio[WORKER_CONFIG_FD] = (uv_stdio_container_t){.flags = UV_IGNORE};
    }
    if (options->quiet)
        arguments[n++] = "--quiet";
    /* or a message that ends process after process would get a fresh budget
     * with each of them */
    if (worker->supervisor->started || worker->supervisor->crashes > 0)
        arguments[n++] = "--replaces";
    return uv_spawn(&worker->supervisor->loop, &worker->process, &how);
}

void worker_process_start(struct worker_process *worker)
{
    int failure = 0;

    worker->ready_at = worker->vouched_at = 0;
    worker->troubled = false;
    worker->stopped = worker->failed = worker->hung = false;
    worker->watch = (struct worker_watch){.looked_at = 0};
    worker->exit_code = 0;
    worker->exit_signal = 0;
    name_instance(worker);
    (void)uv_pipe_init(&worker->supervisor->loop, &worker->channel, 0);
    worker->channel.data = worker->process.data = worker;
    worker->handles = 1;
    worker->phase = WORKER_STARTING;
    shared_memory_close(&worker->memory); /* of the one before */
    worker->failed = shared_memory_make("moontide-attempt", ATTEMPT_SLOT_SIZE,
                                        true, &worker->memory,
                                        &worker->failure) != STATUS_OK;
    if (!worker->failed) {
        worker->handles = 2;
        failure = spawn(worker);
    }
    if (failure != 0)
        diag_set(&worker->failure, STATUS_FAILED,
                 "cannot start a worker process: %s", uv_strerror(failure));
    worker->failed |= failure != 0;
    if (worker->failed)
        close_handles(worker);
    else
        (void)uv_read_start((uv_stream_t *)&worker->channel, give_space,
                            on_read);
}

/* --- and the next one ---------------------------------------------------- */

/* The next one takes over what the last one held, and would count as the death
 * of an unknown instance what is about to be told with the place in the script.
 * A database that is away is not waited for. */
static void on_restart(uv_timer_t *timer)
{
    struct worker_process *worker = timer->data;
    struct duties *duties = worker->supervisor->duties;

    if (duties != NULL && clock_monotonic() < worker->burial_until &&
        duties_bury_pending(duties))
        (void)uv_timer_start(timer, on_restart, BURIAL_LOOK_MS, 0);
    else
        worker_process_start(worker);
}

void worker_process_restart(struct worker_process *worker)
{
    int64_t wait;

    if (worker->ready_at != 0 &&
        clock_monotonic() - worker->ready_at > SETTLED_US)
        backoff_reset(&worker->backoff);
    wait = backoff_next(&worker->backoff);
    worker->burial_until = clock_monotonic() + wait + BURIAL_US;
    (void)uv_timer_start(&worker->restart, on_restart, (uint64_t)wait / 1000,
                         0);
}

void worker_process_close(struct worker_process *worker)
{
    uv_close((uv_handle_t *)&worker->restart, NULL);
    shared_memory_close(&worker->memory);
}
