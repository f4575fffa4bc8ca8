#include "run/compactor.h"

#include "base/memory.h"
#include "topic/high_water_mark.h"

/* After a start the first run does not wait for a long schedule. */
#define FIRST_US (5 * CLOCK_SECOND)

/* A batch shall hold nobody up: so long its work may take, whatever its commit
 * takes. Of the time that passes it has one part in so many, but where a disk
 * was waited for it does not rest for minutes. */
#define BATCH_US   (CLOCK_SECOND / 50)
#define SHARE      10
#define PAUSE_US   (CLOCK_SECOND / 1000)
#define LONGEST_US CLOCK_SECOND
#define FEWEST     100
#define FIRST_SIZE 1000
#define MOST       5000

/* How far a topic's tombstones were swept, which no table holds. */
struct compactor_swept {
    char *topic;
    int64_t through;
};

int64_t compactor_due(struct compactor *compactor,
                      const struct application *app, int64_t now)
{
    int64_t schedule = app->settings->compaction_us;

    if (schedule == 0)
        return INT64_MAX;
    if (!compactor->begun) {
        compactor->begun = true;
        compactor->due_at = now + (schedule < FIRST_US ? schedule : FIRST_US);
    }
    return compactor->due_at;
}

void compactor_finish(struct compactor *compactor,
                      const struct application *app)
{
    if (app->settings->compaction_us == 0)
        return;
    compactor->at_once = true;
    compactor->phase = COMPACTOR_BEGINS;
}

static struct compactor_swept *swept_of(struct compactor *compactor)
{
    const char *topic = compactor->topic.topic.data;
    struct compactor_swept *added;

    for (size_t i = 0; i < compactor->nswept; i++)
        if (strcmp(compactor->swept[i].topic, topic) == 0)
            return &compactor->swept[i];
    compactor->swept = mem_grow(compactor->swept, compactor->nswept + 1,
                                sizeof(*compactor->swept));
    added = &compactor->swept[compactor->nswept++];
    added->topic = mem_copy_text(topic, strlen(topic));
    added->through = 0;
    return added;
}

static enum status policy_of(const struct compactor *compactor,
                             struct application *app,
                             struct compaction_policy *policy,
                             struct diag *diag)
{
    int64_t age = app->settings->tombstones_us;
    int64_t now;
    enum status status = application_clock(app, &now, diag);

    if (status != STATUS_OK)
        return status;
    *policy = (struct compaction_policy){
        .before_us = compactor->at_once ? now - app->settings->compaction_us
                                        : INT64_MAX,
        .tombstones_us = age > 0 ? now - age : INT64_MIN,
        .messages = compactor->messages,
    };
    return STATUS_OK;
}

/* Only a whole batch tells anything of the size. */
static void adapt(struct compactor *compactor,
                  const struct compaction_report *report)
{
    size_t messages = compactor->messages;

    compactor->cost_us = report->cost_us;
    if ((size_t)report->passed < messages)
        return;
    if (report->work_us > BATCH_US)
        messages /= 2;
    else if (report->work_us < BATCH_US / 2)
        messages += messages / 4;
    if (messages < FEWEST)
        messages = FEWEST;
    compactor->messages = messages < MOST ? messages : MOST;
}

/* --- one batch ----------------------------------------------------------- */

/* Where one mark serves all topics, nobody may have moved it who reads one. */
static enum status begin(struct compactor *compactor, struct application *app,
                         struct diag *diag)
{
    struct high_water_mark mark;

    compactor->phase = COMPACTOR_SEEKS;
    buffer_clear(&compactor->topic.topic);
    if ((db_abilities(app->db) & DB_CAN_SEQUENCE) == 0)
        return STATUS_OK;
    return high_water_mark_advance(app->db, app->catalog,
                                   HIGH_WATER_MARK_READ_MODELS, &mark, diag);
}

static enum status seek(struct compactor *compactor, struct application *app,
                        struct diag *diag)
{
    bool found;
    enum status status = compaction_next(app->db, app->catalog,
                                         &compactor->topic, &found, diag);

    if (status != STATUS_OK)
        return status;
    compactor->phase = found ? COMPACTOR_DELETES : COMPACTOR_RESTS;
    compactor->superseded = compactor->tombstones = 0;
    if (found)
        compactor->topic.swept = swept_of(compactor)->through;
    return STATUS_OK;
}

static enum status delete_some(struct compactor *compactor,
                               struct application *app, struct diag *diag)
{
    struct compaction_policy policy;
    struct compaction_report report;
    enum status status = policy_of(compactor, app, &policy, diag);

    if (status == STATUS_OK)
        status = compaction_step(app->db, app->catalog, &policy,
                                 &compactor->topic, &report, diag);
    if (status != STATUS_OK)
        return status;
    compactor->superseded += report.deleted;
    adapt(compactor, &report);
    if (!report.more)
        compactor->phase = COMPACTOR_SWEEPS;
    return STATUS_OK;
}

static void tell_topic(const struct compactor *compactor,
                       const struct application *app)
{
    if (compactor->superseded + compactor->tombstones == 0)
        return;
    log_write(&app->log, LOG_INFO,
              &(struct log_about){.topic = compactor->topic.source.data,
                                  .position = compactor->topic.through},
              "compacted: %lld superseded messages and %lld tombstones deleted",
              (long long)compactor->superseded,
              (long long)compactor->tombstones);
}

static enum status sweep_some(struct compactor *compactor,
                              struct application *app, struct diag *diag)
{
    struct compaction_policy policy;
    struct compaction_report report;
    enum status status = policy_of(compactor, app, &policy, diag);

    if (status == STATUS_OK)
        status = compaction_sweep(app->db, app->catalog, &policy,
                                  &compactor->topic, &report, diag);
    if (status != STATUS_OK)
        return status;
    compactor->tombstones += report.deleted;
    adapt(compactor, &report);
    swept_of(compactor)->through = compactor->topic.swept;
    if (report.more)
        return STATUS_OK;
    tell_topic(compactor, app);
    compactor->phase = COMPACTOR_SEEKS;
    return STATUS_OK;
}

static enum status work(struct compactor *compactor, struct application *app,
                        struct diag *diag)
{
    switch (compactor->phase) {
    case COMPACTOR_RESTS:
    case COMPACTOR_BEGINS:
        return begin(compactor, app, diag);
    case COMPACTOR_SEEKS:
        return seek(compactor, app, diag);
    case COMPACTOR_DELETES:
        return delete_some(compactor, app, diag);
    case COMPACTOR_SWEEPS:
        return sweep_some(compactor, app, diag);
    }
    return STATUS_OK;
}

/* --- pace ---------------------------------------------------------------- */

static void plan(struct compactor *compactor, const struct application *app,
                 int64_t now, int64_t took)
{
    int64_t pause = compactor->cost_us * (SHARE - 1) + PAUSE_US;

    if (compactor->phase != COMPACTOR_RESTS) {
        compactor->due_at = now + took;
        if (!compactor->at_once)
            compactor->due_at += pause < LONGEST_US ? pause : LONGEST_US;
        return;
    }
    compactor->due_at = app->settings->compaction_us +
                        (compactor->at_once ? now : compactor->run_at);
    compactor->at_once = false;
    if (compactor->due_at < now + PAUSE_US)
        compactor->due_at = now + PAUSE_US;
}

/* What another host is at, or what the database refuses, is left out in this
 * run; the topics behind it have their turn. */
static enum status leave_out(struct compactor *compactor,
                             const struct application *app, enum status status,
                             struct diag *diag)
{
    if (status == STATUS_LOST || status == STATUS_UNAVAILABLE)
        return status;
    log_write(&app->log, status == STATUS_CONFLICT ? LOG_DEBUG : LOG_ERROR,
              &(struct log_about){.topic = compactor->topic.source.data},
              "compaction is left to the next run: %s", diag->message);
    compactor->phase = compactor->phase == COMPACTOR_SEEKS ? COMPACTOR_RESTS
                                                           : COMPACTOR_SEEKS;
    return STATUS_OK;
}

enum status compactor_step(struct compactor *compactor, struct application *app,
                           int64_t now, struct diag *diag)
{
    int64_t began = clock_monotonic();
    int64_t took;
    enum status status;

    if (compactor->messages == 0)
        compactor->messages = FIRST_SIZE;
    if (compactor->phase == COMPACTOR_RESTS) {
        compactor->phase = COMPACTOR_BEGINS;
        compactor->run_at = now;
    }
    compactor->cost_us = -1;
    status = work(compactor, app, diag);
    if (status != STATUS_OK)
        status = leave_out(compactor, app, status, diag);
    took = clock_monotonic() - began;
    if (compactor->cost_us < 0)
        compactor->cost_us = took;
    plan(compactor, app, now, took);
    return status;
}

void compactor_free(struct compactor *compactor)
{
    for (size_t i = 0; i < compactor->nswept; i++)
        mem_free(compactor->swept[i].topic);
    mem_free(compactor->swept);
    compaction_free(&compactor->topic);
}
