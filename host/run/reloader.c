#include "run/reloader.h"

#include "run/config_change.h"
#include "run/control.h"
#include "run/reload_folders.h"
#include "run/reload_wish.h"
#include "run/script_child.h"
#include "run/supervisor_parts.h"
#include "run/undeclared.h"

#include "base/memory.h"

#include <signal.h>

/* A switch whose worker dies over it is tried with so many others. */
#define FIRST_TRIES 5

/* Lines about saves that are written whatever was written before. */
#define TOLD_A_MINUTE 30

enum reloader_phase {
    RELOADER_IDLE,
    RELOADER_CHECKING,
    RELOADER_FIRST, /* one worker was told to switch, or is waited for */
    RELOADER_REST,  /* all were */
};

struct reloader {
    struct supervisor *supervisor;
    uv_signal_t hangup;
    struct watch *watch;
    struct control *control;
    struct script_child child;
    struct script_store store;
    enum reloader_phase phase;
    bool stopped;
    bool refused;             /* what was saved last */
    struct reload_wish wish;  /* for the next round */
    struct reload_wish round; /* in hand */
    struct script_version live, next;
    struct script_place live_place, next_place;
    struct script_place old_place; /* while some worker may still read it */
    struct worker_process *first;  /* was told to switch; NULL: none yet */
    int tries;
    int64_t began; /* monotonic: the round in hand */
    struct config_change config;
    int64_t minute_began; /* monotonic */
    int told;             /* lines since then */
};

static const struct log *log_of(const struct reloader *reloader)
{
    return &reloader->supervisor->log;
}

/* Somebody who saves wants to read what became of it each time; a program that
 * does is told like any other trouble. */
static struct log_about about_save(struct reloader *reloader)
{
    int64_t now = clock_monotonic();

    if (now - reloader->minute_began >= 60 * CLOCK_SECOND) {
        reloader->minute_began = now;
        reloader->told = 0;
    }
    return (struct log_about){.every = reloader->told++ < TOLD_A_MINUTE};
}

static void begin_round(struct reloader *reloader);

static void answer(struct reloader *reloader, struct reload_wish *wish,
                   enum status status, bool changed, const char *changes,
                   const char *message)
{
    reload_wish_answer(wish, &(struct reload_answer){
                                 .status = status,
                                 .version = reloader->live.hash,
                                 .changed = changed,
                                 .changes = changes,
                                 .message = message,
                             });
}

/* Looks where the live version and a save of it would lie. */
static void watch_live(struct reloader *reloader)
{
    if (reloader->watch != NULL)
        reload_folders_watch(reloader->watch,
                             reloader->supervisor->options->settings,
                             &reloader->live);
}

/* --- what is written down --------------------------------------------------
 */

static void record(struct reloader *reloader, const char *changes,
                   const char *error)
{
    struct supervisor *supervisor = reloader->supervisor;
    struct script_record record = {.live = error == NULL};

    reloader->refused = error != NULL;
    if (supervisor->duties == NULL || supervisor->duties_ended)
        return;
    memcpy(record.version,
           error == NULL ? reloader->live.hash : reloader->next.hash,
           sizeof(record.version));
    for (size_t i = 0; record.live && i < reloader->live.nconsumers; i++)
        undeclared_add(&record.declared, reloader->live.consumers[i].name);
    buffer_append_string(&record.changes, changes);
    buffer_append_string(&record.error, error != NULL ? error : "");
    duties_record(supervisor->duties, &record);
}

void reloader_record_start(struct reloader *reloader)
{
    struct buffer changes = BUFFER_EMPTY;

    script_version_changes(NULL, &reloader->live, &changes);
    record(reloader, changes.data, NULL);
    buffer_free(&changes);
}

/* --- the end of a round ----------------------------------------------------
 */

static void end_round(struct reloader *reloader)
{
    reloader->phase = RELOADER_IDLE;
    reloader->first = NULL;
    script_version_free(&reloader->next);
    reloader->round = (struct reload_wish){.wanted = false};
    if (reloader->supervisor->started) /* the start itself is no reload */
        notify_systemd_send(&reloader->supervisor->notify, "READY=1");
    if (reloader->wish.wanted && !reloader->stopped)
        begin_round(reloader);
}

static void refuse(struct reloader *reloader, const struct diag *why)
{
    struct log_about about;

    about = about_save(reloader);
    about.every = true; /* each save may be wrong in another way */
    log_write(log_of(reloader), LOG_ERROR, &about,
              "the saved scripts are not taken, and version %.*s goes on: %s",
              SCRIPT_VERSION_SHOWN, reloader->live.hash, why->message);
    record(reloader, "", why->message);
    answer(reloader, &reloader->round, why->status, false, "", why->message);
    if (reloader->next_place.length > 0)
        script_store_drop(&reloader->store, &reloader->next_place);
    reloader->next_place = (struct script_place){.length = 0};
    end_round(reloader);
}

/* Whether every worker runs the live version, or will by itself. */
static bool all_switched(const struct reloader *reloader)
{
    const struct supervisor *supervisor = reloader->supervisor;

    for (int i = 0; i < supervisor->nworkers; i++) {
        const struct worker_process *worker = &supervisor->workers[i];

        if (worker_process_alive(worker) &&
            strcmp(worker->scripts, reloader->live.hash) != 0)
            return false;
    }
    return true;
}

static void finish_if_done(struct reloader *reloader)
{
    struct buffer changes = BUFFER_EMPTY;
    struct log_about about;

    if (reloader->phase != RELOADER_REST || !all_switched(reloader))
        return;
    /* `next` is what was live before */
    script_version_changes(&reloader->next, &reloader->live, &changes);
    about = about_save(reloader);
    log_write(log_of(reloader), LOG_INFO, &about,
              "reloaded the scripts, version %.*s, in %lld ms: %s",
              SCRIPT_VERSION_SHOWN, reloader->live.hash,
              (long long)(clock_monotonic() - reloader->began) / 1000,
              changes.data);
    script_store_drop(&reloader->store, &reloader->old_place);
    record(reloader, changes.data, NULL);
    answer(reloader, &reloader->round, STATUS_OK, true, changes.data, "");
    buffer_free(&changes);
    end_round(reloader);
}

/* --- the switch ------------------------------------------------------------
 */

static void order(struct worker_process *worker,
                  const struct script_place *place, int64_t how)
{
    char where[SCRIPT_PLACE_TEXT_SIZE];

    script_place_write(place, where);
    worker->switching = true;
    worker_process_tell(worker, CHANNEL_SWITCH, how, where);
}

/* Any worker that runs; the first that does if none. */
static void order_first(struct reloader *reloader)
{
    struct supervisor *supervisor = reloader->supervisor;
    int64_t how = CHANNEL_SWITCH_FIRST |
                  (reloader->round.accept ? CHANNEL_SWITCH_ACCEPT : 0);

    if (reloader->phase != RELOADER_FIRST || reloader->first != NULL)
        return;
    for (int i = 0; i < supervisor->nworkers; i++) {
        struct worker_process *worker = &supervisor->workers[i];

        if (worker->phase != WORKER_RUNNING)
            continue;
        reloader->first = worker;
        order(worker, &reloader->next_place, how);
        return;
    }
}

static void order_rest(struct reloader *reloader)
{
    struct supervisor *supervisor = reloader->supervisor;

    for (int i = 0; i < supervisor->nworkers; i++) {
        struct worker_process *worker = &supervisor->workers[i];

        if (worker->phase == WORKER_RUNNING && !worker->switching &&
            strcmp(worker->scripts, reloader->live.hash) != 0)
            order(worker, &reloader->live_place, 0);
    }
    finish_if_done(reloader);
}

/* From here on there is no way back: workers that start take the new one. */
static void go_live(struct reloader *reloader)
{
    struct script_version was = reloader->live;

    reloader->live = reloader->next;
    reloader->next = was;
    reloader->old_place = reloader->live_place;
    reloader->live_place = reloader->next_place;
    reloader->next_place = (struct script_place){.length = 0};
    reloader->first = NULL;
    reloader->phase = RELOADER_REST;
    watch_live(reloader);
    order_rest(reloader);
}

void reloader_worker_ready(struct reloader *reloader,
                           struct worker_process *worker)
{
    (void)worker;
    if (reloader->stopped)
        return;
    if (reloader->phase == RELOADER_FIRST)
        order_first(reloader);
    else if (reloader->phase != RELOADER_CHECKING)
        order_rest(reloader);
}

static void take_kept(struct reloader *reloader, struct worker_process *worker,
                      const struct channel_message *answer_of_it)
{
    struct diag why;

    diag_set(&why, (enum status)answer_of_it->number, TEXT_FORMAT,
             TEXT_ARGS(answer_of_it->text));
    if (reloader->phase == RELOADER_FIRST && worker == reloader->first) {
        refuse(reloader, &why);
        return;
    }
    /* the others run the new version: it takes it at its start */
    log_write(log_of(reloader), LOG_WARN, NULL,
              "worker %d cannot switch to the new scripts and is started "
              "again: %s",
              worker->number, why.message);
    worker_process_send(worker, CHANNEL_STOP);
}

void reloader_worker_answer(struct reloader *reloader,
                            struct worker_process *worker,
                            const struct channel_message *message)
{
    const struct script_place *place = reloader->phase == RELOADER_FIRST
                                           ? &reloader->next_place
                                           : &reloader->live_place;

    if (!worker->switching || reloader->stopped)
        return;
    worker->switching = false;
    if (message->type == CHANNEL_KEPT) {
        take_kept(reloader, worker, message);
        return;
    }
    if (!text_equal(message->text, text_of(place->hash))) {
        worker_process_kill(worker,
                            "it runs other scripts than it was told to");
        return;
    }
    memcpy(worker->scripts, place->hash, sizeof(worker->scripts));
    if (reloader->phase == RELOADER_FIRST && worker == reloader->first)
        go_live(reloader);
    else
        finish_if_done(reloader);
}

void reloader_worker_gone(struct reloader *reloader,
                          struct worker_process *worker)
{
    struct diag diag;

    worker->switching = false;
    if (reloader->stopped)
        return;
    if (reloader->phase == RELOADER_REST) {
        finish_if_done(reloader);
        return;
    }
    if (reloader->phase != RELOADER_FIRST || worker != reloader->first)
        return;
    /* it may have died of anything */
    reloader->first = NULL;
    if (++reloader->tries < FIRST_TRIES) {
        order_first(reloader);
        return;
    }
    diag_set(&diag, STATUS_FAILED,
             "%d workers have ended while they switched to them",
             reloader->tries);
    refuse(reloader, &diag);
}

/* --- the check -------------------------------------------------------------
 */

static void start_first_worker(struct reloader *reloader)
{
    struct script_version was = reloader->live;

    reloader->live = reloader->next;
    reloader->next = was;
    reloader->live_place = reloader->next_place;
    reloader->next_place = (struct script_place){.length = 0};
    watch_live(reloader);
    end_round(reloader);
    worker_process_start(&reloader->supervisor->workers[0]);
}

static bool is_first_check(const struct reloader *reloader)
{
    return reloader->live.hash[0] == '\0';
}

static void take_good(struct reloader *reloader, struct text bundle)
{
    struct diag diag;

    if (script_store_add(&reloader->store, bundle, &reloader->next_place,
                         &diag) != STATUS_OK) {
        if (is_first_check(reloader))
            supervisor_stop(reloader->supervisor, &diag);
        else
            refuse(reloader, &diag);
        return;
    }
    memcpy(reloader->next_place.hash, reloader->next.hash,
           sizeof(reloader->next_place.hash));
    if (is_first_check(reloader)) {
        start_first_worker(reloader);
        return;
    }
    reloader->phase = RELOADER_FIRST;
    reloader->tries = 0;
    order_first(reloader);
}

static void on_checked(void *arg, const struct diag *failure,
                       struct script_version *version, struct text bundle)
{
    struct reloader *reloader = arg;
    struct log_about about;

    if (reloader->stopped) {
        script_version_free(version);
        return;
    }
    reloader->next = *version;
    if (failure != NULL) {
        if (is_first_check(reloader))
            supervisor_stop(reloader->supervisor, failure);
        else
            refuse(reloader, failure);
        return;
    }
    if (strcmp(reloader->next.hash, reloader->live.hash) != 0) {
        take_good(reloader, bundle);
        return;
    }
    about = about_save(reloader);
    if (reloader->round.told)
        log_write(log_of(reloader), LOG_INFO, &about,
                  "the scripts are those that run, version %.*s",
                  SCRIPT_VERSION_SHOWN, reloader->live.hash);
    if (reloader->refused)
        record(reloader, "as before again", NULL);
    answer(reloader, &reloader->round, STATUS_OK, false, "", "");
    end_round(reloader);
}

static void begin_round(struct reloader *reloader)
{
    reloader->round = reloader->wish;
    reloader->wish = (struct reload_wish){.wanted = false};
    reloader->phase = RELOADER_CHECKING;
    reloader->began = clock_monotonic();
    if (reloader->supervisor->started)
        notify_systemd_send(&reloader->supervisor->notify,
                            "RELOADING=1\nMONOTONIC_USEC=%lld",
                            (long long)reloader->began);
    config_change_tell(&reloader->config, log_of(reloader));
    /* first: what changes from here on is another change */
    watch_live(reloader);
    script_child_start(&reloader->child);
}

static void wish_for(struct reloader *reloader)
{
    reloader->wish.wanted = true;
    if (reloader->phase == RELOADER_IDLE && !reloader->stopped &&
        !is_first_check(reloader))
        begin_round(reloader);
}

/* --- who asks --------------------------------------------------------------
 */

static void on_hangup(uv_signal_t *handle, int number)
{
    struct reloader *reloader = handle->data;

    (void)number;
    reloader->wish.told = true;
    wish_for(reloader);
}

static bool is_wanted(void *arg, const char *folder, const char *name)
{
    const struct reloader *reloader = arg;

    return reload_folders_wanted(reloader->supervisor->options->settings,
                                 &reloader->live, folder, name);
}

static void on_saved(void *arg)
{
    wish_for(arg);
}

static void on_asked(void *arg, struct control_asker *asker, const char *line)
{
    struct reloader *reloader = arg;
    bool accept = strcmp(line, "reload accept") == 0;

    if (!accept && strcmp(line, "reload") != 0) {
        control_answer(asker, TEXT_LITERAL("{\"status\":\"usage\"}"));
        return;
    }
    reload_wish_wait(&reloader->wish, asker);
    reloader->wish.accept |= accept;
    reloader->wish.told = true;
    wish_for(reloader);
}

/* --- its life --------------------------------------------------------------
 */

enum status reloader_open(struct supervisor *supervisor,
                          struct reloader **reloader_out, struct diag *diag)
{
    struct reloader *reloader = mem_alloc(sizeof(*reloader));
    const struct settings *settings = supervisor->options->settings;
    const struct watch_options watch = {
        .loop = &supervisor->loop,
        .wanted = is_wanted,
        .changed = on_saved,
        .arg = reloader,
    };
    struct diag own;
    enum status status;

    reloader->supervisor = supervisor;
    status = script_store_open(&reloader->store, diag);
    if (status != STATUS_OK) {
        mem_free(reloader);
        return status;
    }
    config_change_begin(&reloader->config, settings);
    script_child_init(&reloader->child, &supervisor->loop, supervisor->options,
                      supervisor->config.fd, on_checked, reloader);
    (void)uv_signal_init(&supervisor->loop, &reloader->hangup);
    reloader->hangup.data = reloader;
    (void)uv_signal_start(&reloader->hangup, on_hangup, SIGHUP);
    /* a host runs without these, too */
    if (watch_open(&watch, &reloader->watch, &own) != STATUS_OK)
        log_write(&supervisor->log, LOG_WARN, NULL,
                  "%s; saved scripts are taken by `moontide reload` only",
                  own.message);
    if (control_open(&supervisor->loop, settings->app_dir, on_asked, reloader,
                     &reloader->control, &own) != STATUS_OK)
        log_write(&supervisor->log, LOG_WARN, NULL, "%s", own.message);
    *reloader_out = reloader;
    return STATUS_OK;
}

void reloader_start(struct reloader *reloader)
{
    begin_round(reloader);
}

void reloader_stop(struct reloader *reloader)
{
    if (reloader->stopped)
        return;
    reloader->stopped = true;
    answer(reloader, &reloader->round, STATUS_STOPPED, false, "",
           "the host stops");
    answer(reloader, &reloader->wish, STATUS_STOPPED, false, "",
           "the host stops");
    script_child_close(&reloader->child);
    watch_close(reloader->watch);
    control_close(reloader->control);
    reloader->watch = NULL;
    reloader->control = NULL;
    uv_close((uv_handle_t *)&reloader->hangup, NULL);
}

void reloader_free(struct reloader *reloader)
{
    if (reloader == NULL)
        return;
    script_version_free(&reloader->live);
    script_version_free(&reloader->next);
    script_store_close(&reloader->store);
    mem_free(reloader);
}

const struct script_place *reloader_place(const struct reloader *reloader)
{
    return &reloader->live_place;
}

int reloader_fd(const struct reloader *reloader)
{
    return reloader->store.read_fd;
}
