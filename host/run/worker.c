#include "run/worker.h"

#include "consumer/attempt_slot.h"
#include "run/application.h"
#include "run/channel.h"
#include "run/host.h"
#include "run/shared_memory.h"
#include "run/start.h"
#include "run/worker_scripts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_OTHER_FD (WORKER_CONFIG_FD + 1)

#define CONFIG_MAX ((size_t)64 << 20)

/* A waiting worker says so often that it lives. */
#define TICK_US (CLOCK_SECOND / 10)

struct worker_state {
    struct shared_memory memory;
    struct attempt_slot *slot; /* in it */
    struct channel_reader reader;
    struct worker_scripts scripts;
    struct start start;
    struct application *app;
    const struct log *log;
};

/* A signal handler can reach nothing else; the channel sets it, too. */
static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

/* A Ctrl-C reaches the whole group, and SIGHUP means the supervisor: it is the
 * one to act. SIGTERM ends this worker in order. */
static void set_signals(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_IGN;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    action.sa_handler = on_signal;
    sigaction(SIGTERM, &action, NULL);
}

/* A descriptor that was open where the host was started, or that was made
 * while another thread forked, is nobody's business here. */
static void close_others(void)
{
    if (close_range(FIRST_OTHER_FD, UINT_MAX, 0) == 0)
        return;
    for (int fd = FIRST_OTHER_FD; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
        close(fd);
}

enum status worker_attach(pid_t supervisor, struct diag *diag)
{
    struct stat about;

    if (fstat(WORKER_CHANNEL_FD, &about) != 0 || !S_ISSOCK(about.st_mode))
        return diag_set(diag, STATUS_USAGE,
                        "workers are started by `moontide run` only");
    set_signals();
    close_others();
    (void)fcntl(WORKER_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
    (void)fcntl(WORKER_SCRIPTS_FD, F_SETFD, FD_CLOEXEC);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return diag_set(diag, STATUS_FAILED,
                        "cannot tie this process to its supervisor: %s",
                        strerror(errno));
    /* it may have died before that */
    if (getppid() != supervisor)
        return diag_set(diag, STATUS_USAGE,
                        "the supervisor %d of this worker is gone",
                        (int)supervisor);
    return STATUS_OK;
}

enum status worker_settings(const char *path, struct settings *settings,
                            struct diag *diag)
{
    struct buffer config = BUFFER_EMPTY;
    struct settings_source source = {.config_path = path};
    enum status status = STATUS_OK;

    if (path != NULL)
        status = shared_memory_read(WORKER_CONFIG_FD, CONFIG_MAX, &config,
                                    diag);
    source.config = buffer_text(&config);
    if (status == STATUS_OK)
        status = settings_load(&source, settings, diag);
    buffer_free(&config);
    return status;
}

/* --- while the host runs ------------------------------------------------- */

/* What is open rolls back, as after a crash. */
static void end_without_supervisor(const struct worker_state *worker,
                                   const char *why)
{
    log_write(worker->log, LOG_ERROR, NULL,
              "this worker ends with its supervisor: %s", why);
    _exit(1);
}

static bool take_messages(struct worker_state *worker)
{
    struct channel_message message;
    struct diag diag;
    bool woken = false;
    bool found;

    do {
        if (channel_reader_next(&worker->reader, CHANNEL_SUPERVISOR, &message,
                                &found, &diag) != STATUS_OK)
            end_without_supervisor(worker, diag.message);
        if (!found)
            break;
        if (message.type == CHANNEL_STOP)
            stop_asked = 1;
        if (message.type == CHANNEL_SWITCH &&
            worker_scripts_order(&worker->scripts, &message, &diag) !=
                STATUS_OK)
            end_without_supervisor(worker, diag.message);
        woken |= message.type == CHANNEL_WAKE || message.type == CHANNEL_SWITCH;
    } while (found);
    return woken;
}

/* Reads what is there; true when it is a reason not to wait. */
static bool read_channel(struct worker_state *worker)
{
    char bytes[4096];
    ssize_t n;

    do {
        n = recv(WORKER_CHANNEL_FD, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n == 0)
            end_without_supervisor(worker, "it is gone");
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            end_without_supervisor(worker, strerror(errno));
        if (n > 0)
            channel_reader_add(&worker->reader, bytes, (size_t)n);
    } while (n == (ssize_t)sizeof(bytes));
    return take_messages(worker);
}

static bool wait_for_work(void *arg, int64_t us)
{
    struct worker_state *worker = arg;
    int64_t until = clock_monotonic() + us;
    int64_t left = us;
    bool woken = false;

    do {
        struct pollfd ask = {.fd = WORKER_CHANNEL_FD, .events = POLLIN};
        int64_t part = left < TICK_US ? left : TICK_US;
        struct timespec time = {
            .tv_sec = part / CLOCK_SECOND,
            .tv_nsec = part % CLOCK_SECOND * 1000,
        };

        attempt_slot_tick(worker->slot);
        if (ppoll(&ask, 1, &time, NULL) > 0)
            woken |= read_channel(worker);
        left = until - clock_monotonic();
    } while (!woken && !stop_asked && left > 0);
    return woken;
}

static enum status follow_orders(void *arg, struct host *host,
                                 struct diag *diag)
{
    struct worker_state *worker = arg;

    return worker_scripts_follow(&worker->scripts, worker->app, host, diag);
}

/* The supervisor tells it for all of its workers. A channel that is gone ends
 * this one when it is read. */
static void tell_trouble(void *arg, const struct diag *why)
{
    struct channel_message message = {.type = CHANNEL_WELL};
    struct diag gone;

    (void)arg;
    if (why != NULL)
        message = (struct channel_message){
            .type = CHANNEL_TROUBLE,
            .number = why->status,
            .text = text_of(why->message),
        };
    (void)!channel_send(WORKER_CHANNEL_FD, &message, &gone);
}

/* --- its life ------------------------------------------------------------ */

static enum status tell_ready(const struct application *app, struct diag *diag)
{
    struct channel_message ready = {.type = CHANNEL_READY};
    size_t count = 0;

    (void)script_declarations(app->script, &count);
    ready.number = (int64_t)count;
    ready.text = text_of(db_url_shown(app->db));
    return channel_send(WORKER_CHANNEL_FD, &ready, diag);
}

static enum status run_host(struct application *app,
                            const struct worker_options *options,
                            struct worker_state *worker, struct diag *diag)
{
    const struct host_options host_options = {
        .instance_id = options->instance_id,
        .slot = worker->slot,
        .supervised = true,
        .replaces = options->replaces,
        .wait = wait_for_work,
        .wait_arg = worker,
        .between = follow_orders,
        .between_arg = worker,
        .trouble = tell_trouble,
    };
    struct diag close_diag = {.status = STATUS_OK};
    struct host *host;
    enum status status = start_host(&worker->start, app, &host_options, &host,
                                    diag);
    enum status closed;

    if (status != STATUS_OK)
        return status;
    status = tell_ready(app, diag);
    if (status == STATUS_OK)
        status = host_run(host, &stop_asked, diag);
    if (status == STATUS_STOPPED)
        status = STATUS_OK;
    closed = host_close(host, &close_diag);
    if (status == STATUS_OK && closed != STATUS_OK) {
        status = closed;
        *diag = close_diag;
    }
    return status;
}

void worker_tell_failure(const struct diag *diag)
{
    const struct channel_message failed = {
        .type = CHANNEL_FAILED,
        .number = diag->status,
        .text = text_of(diag->message),
    };
    struct diag gone;

    /* without a supervisor there is nobody to tell */
    (void)!channel_send(WORKER_CHANNEL_FD, &failed, &gone);
}

static enum status open_application(const struct worker_options *options,
                                    struct worker_state *worker,
                                    struct application *app, struct diag *diag)
{
    struct buffer bundle = BUFFER_EMPTY;
    struct script_place place;
    enum status status = script_place_read(options->scripts, &place, diag);

    if (status == STATUS_OK)
        status = worker_scripts_read(&place, &bundle, diag);
    if (status == STATUS_OK)
        status = start_application(&worker->start, options->settings,
                                   APPLICATION_DATABASE | APPLICATION_SCRIPTS |
                                       APPLICATION_TABLES,
                                   buffer_text(&bundle), app, diag);
    buffer_free(&bundle);
    if (status != STATUS_OK)
        return status;
    status = worker_scripts_verify(app->script, &place, diag);
    if (status != STATUS_OK)
        application_close(app);
    return status;
}

enum status worker_run(const struct worker_options *options, struct diag *diag)
{
    const struct channel_message stopped = {.type = CHANNEL_STOPPED};
    struct application app;
    struct worker_state worker = {
        .start = {.stop = &stop_asked, .wait = wait_for_work},
        .app = &app,
        .log = &app.log,
    };
    enum status status = shared_memory_open(WORKER_SLOT_FD, ATTEMPT_SLOT_SIZE,
                                            true, &worker.memory, diag);

    worker.slot = worker.memory.at;
    worker.start.wait_arg = &worker;
    if (status == STATUS_OK)
        status = open_application(options, &worker, &app, diag);
    if (status == STATUS_OK) {
        if (options->quiet && app.log.level < LOG_WARN)
            app.log.level = LOG_WARN;
        status = run_host(&app, options, &worker, diag);
        application_close(&app);
    }
    channel_reader_free(&worker.reader);
    shared_memory_close(&worker.memory);
    if (status != STATUS_OK && status != STATUS_STOPPED) {
        worker_tell_failure(diag);
        return status;
    }
    return channel_send(WORKER_CHANNEL_FD, &stopped, diag);
}
