#include "run/duties.h"

#include "base/memory.h"
#include "partition/instance.h"
#include "run/application.h"
#include "run/backoff.h"
#include "run/burden_watch.h"
#include "run/compactor.h"
#include "run/declared_consumer.h"
#include "run/mark_watch.h"
#include "run/pace.h"
#include "run/retainer.h"
#include "run/saga_retainer.h"
#include "run/script_duty.h"
#include "run/wake.h"
#include "topic/message.h"
#include "topic/notify.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RETRY_FIRST_US (CLOCK_SECOND / 20)
#define RETRY_CAP_US   (5 * CLOCK_SECOND)

/* The topics whose marks are moved. */
#define DUTIES_TOPICS 3

struct dead_list {
    struct dead_worker *items;
    size_t count;
};

struct duties {
    const struct settings *settings; /* not changed while the thread runs */
    bool quiet;                      /* neither is this */
    struct duties_events events;
    char id[UUID_TEXT_LEN + 1]; /* who moves the marks, of all hosts */
    uv_async_t wake;            /* the thread's way into the loop */
    uv_thread_t thread;

    /* Behind the mutex: what the loop asks, and what it is told. */
    int asked; /* an eventfd: there is something new here */
    pthread_mutex_t mutex;
    char (*vouched)[UUID_TEXT_LEN + 1];
    size_t nvouched;
    int64_t vouched_at; /* monotonic */
    int64_t beaten_at;  /* monotonic: the last heartbeat that was written */
    struct dead_list dead;
    struct script_duty scripts; /* has a mutex of its own */
    bool stop;
    bool moved; /* not told yet */
    bool ended;

    /* Of the thread alone. */
    struct application app;
    struct wake *hearing; /* of what others have appended */
    bool connected;
    bool told; /* that the database is away */
    struct backoff backoff;
    struct mark_watch watches[DUTIES_TOPICS];
    struct burden_watch burden;
    struct retainer retainer;
    struct saga_retainer sagas;
    struct compactor compactor;
    struct pace pace;   /* of the looks at the marks */
    int64_t mark_at;    /* monotonic: when that is */
    int64_t beat_at;    /* monotonic: when the next heartbeat is due */
    int64_t blocked_at; /* monotonic: nothing is tried before; 0: at once */
};

/* --- what the loop asks -------------------------------------------------- */

int64_t duties_vouch(struct duties *duties, const char *const *ids,
                     size_t count)
{
    int64_t beaten_at;

    pthread_mutex_lock(&duties->mutex);
    if (count > duties->nvouched)
        duties->vouched = mem_grow(duties->vouched, count,
                                   sizeof(*duties->vouched));
    for (size_t i = 0; i < count; i++)
        memcpy(duties->vouched[i], ids[i], sizeof(duties->vouched[i]));
    duties->nvouched = count;
    duties->vouched_at = clock_monotonic();
    beaten_at = duties->beaten_at;
    pthread_mutex_unlock(&duties->mutex);
    return beaten_at;
}

static void ask(struct duties *duties)
{
    const uint64_t one = 1;
    ssize_t written = write(duties->asked, &one, sizeof(one));

    (void)written; /* it can only be full, and then it is set */
}

void duties_bury(struct duties *duties, const struct dead_worker *dead)
{
    struct dead_list *list = &duties->dead;

    pthread_mutex_lock(&duties->mutex);
    list->items = mem_grow(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = *dead;
    pthread_mutex_unlock(&duties->mutex);
    ask(duties);
}

bool duties_bury_pending(struct duties *duties)
{
    bool pending;

    pthread_mutex_lock(&duties->mutex);
    pending = duties->dead.count > 0;
    pthread_mutex_unlock(&duties->mutex);
    return pending;
}

void duties_record(struct duties *duties, struct script_record *record)
{
    script_duty_add(&duties->scripts, record);
    ask(duties);
}

void duties_stop(struct duties *duties)
{
    pthread_mutex_lock(&duties->mutex);
    duties->stop = true;
    pthread_mutex_unlock(&duties->mutex);
    ask(duties);
}

/* --- what the loop hears ------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct duties *duties = handle->data;

    duties->events.ended(duties->events.arg);
}

static void on_wake(uv_async_t *wake)
{
    struct duties *duties = wake->data;
    bool moved, ended;

    pthread_mutex_lock(&duties->mutex);
    moved = duties->moved;
    ended = duties->ended;
    duties->moved = false;
    pthread_mutex_unlock(&duties->mutex);
    if (moved)
        duties->events.moved(duties->events.arg);
    if (!ended)
        return;
    (void)uv_thread_join(&duties->thread);
    uv_close((uv_handle_t *)wake, on_closed);
}

static void tell_loop(struct duties *duties, bool moved, bool ended)
{
    pthread_mutex_lock(&duties->mutex);
    duties->moved |= moved;
    duties->ended |= ended;
    pthread_mutex_unlock(&duties->mutex);
    (void)uv_async_send(&duties->wake);
}

/* --- the thread's work --------------------------------------------------- */

/* Another file lies where the database was: what is known is known of the old
 * one, and workers have begun anew with this one. */
static void forget(struct duties *duties)
{
    for (size_t i = 0; i < DUTIES_TOPICS; i++)
        duties->watches[i].mark = (struct high_water_mark){.mark = 0};
    compactor_free(&duties->compactor);
    duties->compactor = (struct compactor){.phase = COMPACTOR_RESTS};
    duties->retainer = (struct retainer){.looked = false};
    duties->sagas = (struct saga_retainer){.looked = false};
    application_close(&duties->app);
}

static enum status connect_now(struct duties *duties, struct diag *diag)
{
    struct application *app = &duties->app;
    enum status status;

    if (app->db != NULL) {
        status = db_reopen(app->db, diag);
        if (status == STATUS_OK || backoff_helps(status))
            return status;
        forget(duties);
    }
    return application_open(duties->settings, APPLICATION_ROWS, app, diag);
}

static enum status connect_once(struct duties *duties, struct diag *diag)
{
    struct application *app = &duties->app;
    enum status status;

    if (duties->connected)
        return STATUS_OK;
    status = connect_now(duties, diag);
    if (duties->quiet && app->log.level < LOG_WARN)
        app->log.level = LOG_WARN;
    duties->connected = status == STATUS_OK;
    if (status == STATUS_OK && duties->hearing == NULL)
        duties->hearing = wake_open(
            duties->settings, notify_channel(app->db, app->catalog), &app->log);
    return status;
}

static enum status beat(struct duties *duties, struct diag *diag)
{
    int64_t heartbeat = duties->settings->lease_heartbeat_us;
    int64_t refreshed;
    const char **ids;
    char(*copy)[UUID_TEXT_LEN + 1];
    size_t count;
    int64_t began = clock_monotonic();
    enum status status = STATUS_OK;

    pthread_mutex_lock(&duties->mutex);
    count = duties->nvouched;
    if (clock_monotonic() - duties->vouched_at > heartbeat)
        count = 0;
    copy = mem_alloc(count * sizeof(*copy) + 1);
    if (count > 0)
        memcpy(copy, duties->vouched, count * sizeof(*copy));
    pthread_mutex_unlock(&duties->mutex);

    ids = mem_alloc(count * sizeof(*ids) + 1);
    for (size_t i = 0; i < count; i++)
        ids[i] = copy[i];
    if (count > 0)
        status = instance_refresh(duties->app.db, duties->app.catalog, ids,
                                  count, duties->settings->lease_duration_us,
                                  &refreshed, diag);
    mem_free(ids);
    mem_free(copy);
    if (status != STATUS_OK)
        return status;
    duties->beat_at = clock_monotonic() + heartbeat;
    pthread_mutex_lock(&duties->mutex);
    duties->beaten_at = began;
    pthread_mutex_unlock(&duties->mutex);
    return STATUS_OK;
}

static enum status look_at_marks(struct duties *duties, struct diag *diag)
{
    bool held = false;
    enum status status = STATUS_OK;

    for (size_t i = 0; i < DUTIES_TOPICS && status == STATUS_OK; i++) {
        struct mark_watch *watch = &duties->watches[i];
        int64_t before = watch->mark.mark;

        status = mark_watch_look(watch, &duties->app, diag);
        held |= watch->mark.mark < watch->mark.end;
        if (watch->mark.mark == before)
            continue;
        tell_loop(duties, true, false); /* who waits for it, at once */
        pace_begin(&duties->pace);
    }
    if (status == STATUS_OK)
        duties->mark_at = clock_monotonic() + pace_next(&duties->pace, held);
    return status;
}

/* First: as long as the dead one's leases are its own nobody else makes the
 * attempt again. What cannot be done for a reason that does not pass must not
 * keep the others from it: the lease lapses by itself. */
static enum status count_attempt(struct duties *duties,
                                 const struct dead_worker *dead,
                                 struct diag *diag)
{
    const struct consumer_env env = declared_consumer_env(&duties->app);
    bool charged;
    enum status status;

    if (!dead->charged)
        return STATUS_OK;
    status = charge_attempt(&env, dead->instance, &dead->attempt, &dead->end,
                            &charged, diag);
    if (status == STATUS_OK || backoff_helps(status))
        return status;
    log_write(&duties->app.log, LOG_ERROR,
              &(struct log_about){.consumer = dead->attempt.name,
                                  .topic = dead->attempt.source,
                                  .position = dead->attempt.position},
              "the attempt of worker %d could not be counted: %s", dead->number,
              diag->message);
    return STATUS_OK;
}

static enum status bury(struct duties *duties, const struct dead_worker *dead,
                        struct diag *diag)
{
    const char *id = dead->instance;
    enum status status = count_attempt(duties, dead, diag);

    if (status != STATUS_OK)
        return status;
    return instance_end(duties->app.db, duties->app.catalog, &id, 1, diag);
}

static enum status bury_all(struct duties *duties, struct diag *diag)
{
    struct dead_worker dead;
    enum status status = STATUS_OK;
    bool found = true;

    while (found && status == STATUS_OK) {
        pthread_mutex_lock(&duties->mutex);
        found = duties->dead.count > 0;
        if (found)
            dead = duties->dead.items[0];
        pthread_mutex_unlock(&duties->mutex);
        if (!found)
            break;
        status = bury(duties, &dead, diag);
        if (backoff_helps(status))
            break;
        if (status != STATUS_OK)
            log_write(&duties->app.log, LOG_ERROR, NULL,
                      "the end of worker %d could not be recorded: %s",
                      dead.number, diag->message);
        status = STATUS_OK;
        pthread_mutex_lock(&duties->mutex);
        duties->dead.count--;
        memmove(duties->dead.items, duties->dead.items + 1,
                duties->dead.count * sizeof(*duties->dead.items));
        pthread_mutex_unlock(&duties->mutex);
    }
    return status;
}

static enum status work(struct duties *duties, struct diag *diag)
{
    int64_t now = clock_monotonic();
    enum status status = connect_once(duties, diag);

    if (status == STATUS_OK && now >= duties->beat_at)
        status = beat(duties, diag);
    if (status == STATUS_OK)
        status = bury_all(duties, diag);
    if (status == STATUS_OK)
        status = script_duty_step(&duties->scripts, &duties->app, diag);
    if (status == STATUS_OK && now >= duties->mark_at)
        status = look_at_marks(duties, diag);
    if (status == STATUS_OK)
        burden_watch_look(&duties->burden, &duties->app);
    if (status == STATUS_OK &&
        retainer_is_due(&duties->retainer, &duties->app, now, false))
        status = retainer_step(&duties->retainer, &duties->app, now, diag);
    if (status == STATUS_OK && saga_retainer_is_due(&duties->sagas, now))
        status = saga_retainer_step(&duties->sagas, &duties->app, now, diag);
    if (status == STATUS_OK &&
        now >= compactor_due(&duties->compactor, &duties->app, now))
        status = compactor_step(&duties->compactor, &duties->app, now, diag);
    return status;
}

/* Told once; the next try comes after a while. */
static void note_trouble(struct duties *duties, const struct diag *diag)
{
    if (!duties->told && diag->status != STATUS_CONFLICT)
        log_write(&duties->app.log, LOG_ERROR, NULL,
                  "heartbeats and the high-water mark: %s; trying again",
                  diag->message);
    duties->told |= diag->status != STATUS_CONFLICT;
    if (diag->status == STATUS_LOST || diag->status == STATUS_UNAVAILABLE)
        duties->connected = false;
    duties->blocked_at = clock_monotonic() + backoff_next(&duties->backoff);
}

static void note_success(struct duties *duties)
{
    if (duties->told)
        log_write(&duties->app.log, LOG_INFO, NULL,
                  "heartbeats and the high-water mark work again");
    duties->told = false;
    duties->blocked_at = 0;
    backoff_reset(&duties->backoff);
}

/* When there is something to do that nobody asks for. */
static int64_t next_due(struct duties *duties)
{
    int64_t due = duties->beat_at < duties->mark_at ? duties->beat_at
                                                    : duties->mark_at;
    int64_t compaction;

    if (duties->blocked_at != 0)
        return duties->blocked_at;
    if (duties->retainer.more || duties->sagas.more)
        return 0;
    if (!duties->connected)
        return due;
    compaction = compactor_due(&duties->compactor, &duties->app,
                               clock_monotonic());
    return compaction < due ? compaction : due;
}

/* What others have appended may be there a moment later only, so the looks at
 * the mark begin anew. */
static void wait_until(struct duties *duties, int64_t until)
{
    struct pollfd asked = {.fd = duties->asked, .events = POLLIN};
    int64_t left = until - clock_monotonic();
    uint64_t times;

    if (duties->hearing == NULL)
        (void)poll(&asked, 1, left > 0 ? (int)(left / 1000) + 1 : 0);
    else if (wake_wait(duties->hearing, duties->asked, left)) {
        pace_begin(&duties->pace);
        duties->mark_at = 0;
    }
    (void)!read(duties->asked, &times, sizeof(times));
}

/* Until something is due or asked for; false when the thread is to end. */
static bool wait_for_work(struct duties *duties)
{
    for (;;) {
        int64_t until = next_due(duties);
        bool stop, due, over;

        pthread_mutex_lock(&duties->mutex);
        stop = duties->stop;
        due = (duties->dead.count > 0 || script_duty_waits(&duties->scripts)) &&
              duties->blocked_at == 0;
        pthread_mutex_unlock(&duties->mutex);
        if (stop || due)
            return !stop;
        /* also without a wait: what is told is taken */
        over = clock_monotonic() >= until;
        wait_until(duties, until);
        if (over)
            return true;
    }
}

static void run(void *arg)
{
    struct duties *duties = arg;
    struct diag diag;

    while (wait_for_work(duties)) {
        if (work(duties, &diag) != STATUS_OK)
            note_trouble(duties, &diag);
        else
            note_success(duties);
        log_tell(&duties->app.log, false);
    }
    /* once: nobody waits here for a database that is away */
    if (connect_once(duties, &diag) == STATUS_OK &&
        bury_all(duties, &diag) != STATUS_OK)
        log_write(&duties->app.log, LOG_WARN, NULL,
                  "the end of a worker could not be recorded, and its leases "
                  "lapse by themselves: %s",
                  diag.message);
    if (duties->connected &&
        script_duty_end(&duties->scripts, &duties->app, &diag) != STATUS_OK)
        log_write(&duties->app.log, LOG_WARN, NULL,
                  "the end of the host could not be recorded: %s",
                  diag.message);
    if (duties->connected)
        (void)!high_water_mark_leave(duties->app.db, duties->app.catalog,
                                     duties->id, NULL);
    wake_close(duties->hearing);
    compactor_free(&duties->compactor);
    application_close(&duties->app);
    tell_loop(duties, false, true);
}

/* --- open and close ------------------------------------------------------ */

static void on_abandoned(uv_handle_t *handle)
{
    duties_close(handle->data);
}

enum status duties_open(uv_loop_t *loop, const struct settings *settings,
                        bool quiet, const struct duties_events *events,
                        struct duties **duties_out, struct diag *diag)
{
    struct duties *duties = mem_alloc(sizeof(*duties));
    int failure;

    duties->settings = settings;
    duties->quiet = quiet;
    duties->events = *events;
    duties->backoff = backoff_make(RETRY_FIRST_US, RETRY_CAP_US);
    duties->watches[0].topic = TOPIC_EVENT_STORE;
    duties->watches[1].topic = TOPIC_EVENT_CAPTURE;
    duties->watches[2].topic = HIGH_WATER_MARK_READ_MODELS;
    instance_new_id(&(struct uuid_source){.left = 0}, duties->id);
    for (size_t i = 0; i < DUTIES_TOPICS; i++)
        duties->watches[i].detector = (struct mark_detector){
            .may_repair = settings->schema_create,
            .owner = duties->id,
            .lease_us = settings->lease_heartbeat_us,
        };
    duties->pace = pace_make(settings->poll_min_us, settings->poll_max_us);
    pthread_mutex_init(&duties->mutex, NULL);
    script_duty_open(&duties->scripts);
    duties->asked = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    failure = duties->asked < 0 ? uv_translate_sys_error(errno) : 0;
    if (failure != 0)
        goto fail_wake;
    failure = uv_async_init(loop, &duties->wake, on_wake);
    if (failure != 0)
        goto fail_wake;
    duties->wake.data = duties;
    failure = uv_thread_create(&duties->thread, run, duties);
    if (failure == 0) {
        *duties_out = duties;
        return STATUS_OK;
    }
    /* the handle is closed by the loop only, and this is memory of its own */
    uv_close((uv_handle_t *)&duties->wake, on_abandoned);
    return diag_set(diag, STATUS_FAILED, "cannot start a thread: %s",
                    uv_strerror(failure));
fail_wake:
    duties_close(duties);
    return diag_set(diag, STATUS_FAILED,
                    "cannot watch over the supervisor's thread: %s",
                    uv_strerror(failure));
}

void duties_close(struct duties *duties)
{
    if (duties == NULL)
        return;
    if (duties->asked >= 0)
        (void)close(duties->asked);
    pthread_mutex_destroy(&duties->mutex);
    mem_free(duties->dead.items);
    script_duty_close(&duties->scripts);
    mem_free(duties->vouched);
    mem_free(duties);
}
