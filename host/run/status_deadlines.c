#include "run/status_deadlines.h"

#include "consumer/deadline.h"
#include "run/status_word.h"

#include <inttypes.h>

/* Deadlines fire within a second; what is later than this has a reason. */
#define OVERDUE_US (5 * CLOCK_SECOND)

struct reading {
    const struct status_request *request;
    struct status_report *report;
};

static enum status take_type(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct reading *reading = arg;
    struct status_report *report = reading->report;
    const char *only = reading->request->consumer;
    struct status_deadlines *d;

    (void)diag;
    if (only != NULL && !text_equal(db_get_text(row, 0), text_of(only)))
        return STATUS_OK;
    report->deadlines = arena_grow(&report->arena, report->deadlines,
                                   report->ndeadlines, sizeof(*d));
    d = &report->deadlines[report->ndeadlines++];
    d->type = arena_string(&report->arena, db_get_text(row, 0));
    d->count = db_get_int64(row, 1);
    d->failed = db_get_int64(row, 2);
    d->dead = db_get_int64(row, 3);
    d->overdue = db_get_int64(row, 4);
    d->overdue_at = db_is_null(row, 5) ? 0 : db_get_timestamp(row, 5);
    d->next_at = db_is_null(row, 6) ? 0 : db_get_timestamp(row, 6);
    d->dead_host = db_get_int64(row, 7);
    return STATUS_OK;
}

struct looking {
    struct status_deadline_failure *failure;
    const char *status;
    struct arena *arena;
};

static enum status take_failure(void *arg, struct db_rows *row,
                                struct diag *diag)
{
    const struct looking *looking = arg;
    struct arena *arena = looking->arena;

    (void)diag;
    *looking->failure = (struct status_deadline_failure){
        .saga = arena_string(arena, db_get_text(row, 0)),
        .name = arena_string(arena, db_get_text(row, 1)),
        .status = looking->status,
        .reason = db_is_null(row, 2) ? "no reason is told"
                                     : arena_string(arena, db_get_text(row, 2)),
        .attempts = db_get_int64(row, 3),
        .next_at = db_is_null(row, 4) ? 0 : db_get_timestamp(row, 4),
    };
    return STATUS_OK;
}

static enum status read_failure(struct application *app, const char *type,
                                enum deadline_status of,
                                struct status_deadline_failure *failure,
                                struct arena *arena, struct diag *diag)
{
    struct looking looking = {failure, deadline_status_word(of), arena};
    const struct db_value params[] = {db_string(type),
                                      db_string(looking.status)};

    return db_rows_each(app->db,
                        catalog_sql(app->catalog, SQL_STATUS_FAILED_DEADLINE),
                        params, 2, take_failure, &looking, diag);
}

enum status status_deadlines_read(struct application *app,
                                  const struct status_request *request,
                                  struct status_report *report,
                                  struct diag *diag)
{
    struct reading reading = {request, report};
    struct db_value param;
    enum status status = deadline_clock(app->db, &app->clock,
                                        &report->deadline_us, diag);

    if (status != STATUS_OK)
        return status;
    param = db_timestamp(report->deadline_us - OVERDUE_US);
    status = db_rows_each(app->db,
                          catalog_sql(app->catalog, SQL_STATUS_DEADLINES),
                          &param, 1, take_type, &reading, diag);
    for (size_t i = 0; status == STATUS_OK && i < report->ndeadlines; i++) {
        struct status_deadlines *d = &report->deadlines[i];

        if (d->dead > 0)
            status = read_failure(app, d->type, DEADLINE_DEAD_LETTER,
                                  &d->last_dead, &report->arena, diag);
        if (status == STATUS_OK && d->failed > 0)
            status = read_failure(app, d->type, DEADLINE_FAILED,
                                  &d->last_failed, &report->arena, diag);
    }
    return status;
}

/* --- problems ------------------------------------------------------------- */

static const struct status_consumer *saga_of(const struct status_report *report,
                                             const char *type)
{
    for (size_t i = 0; i < report->nconsumers; i++) {
        const struct status_consumer *consumer = &report->consumers[i];

        if (strcmp(consumer->type, "saga") == 0 &&
            strcmp(consumer->name, type) == 0)
            return consumer;
    }
    return NULL;
}

/* Why nothing fires, as far as that can be told. */
static void overdue_problem(const struct status_report *report,
                            const struct status_deadlines *d,
                            struct buffer *sentence)
{
    const struct status_consumer *consumer = saga_of(report, d->type);

    buffer_printf(sentence, "saga '%s' has ", d->type);
    status_word_count(sentence, d->overdue, "overdue deadline");
    buffer_append_string(sentence, ", the first since ");
    status_word_age(sentence, report->deadline_us - d->overdue_at);
    if (consumer == NULL || !consumer->declared)
        buffer_append_string(sentence, "; no script declares the saga");
    else if (!status_word_is_in(consumer, CONSUMER_RUNNING))
        buffer_printf(sentence, "; none fires while it is %s", consumer->state);
    else if (consumer->nowners == 0)
        buffer_append_string(sentence, "; no host runs it: they fire when one "
                                       "starts");
    else
        buffer_append_string(sentence,
                             "; it is behind with them, or with the messages "
                             "that were there before they were due");
    buffer_printf(sentence,
                  "; `moontide deadlines list %s --due-before now` lists them",
                  d->type);
}

static void dead_problem(const struct status_deadlines *d,
                         struct buffer *sentence)
{
    buffer_printf(sentence, "saga '%s' has ", d->type);
    status_word_count(sentence, d->dead, "dead deadline");
    if (d->last_dead.saga != NULL)
        buffer_printf(sentence, ", the last of them '%s' of saga '%s': %s",
                      d->last_dead.name, d->last_dead.saga,
                      d->last_dead.reason);
    buffer_printf(sentence,
                  "; `moontide deadlines list %s --status DEAD_LETTER` lists "
                  "them, with retry they are fired again",
                  d->type);
    if (d->dead_host == 0) {
        buffer_append_string(sentence, ", with delete they never are");
        return;
    }
    buffer_append_string(sentence, "; ");
    if (d->dead_host < d->dead)
        buffer_printf(sentence, "%" PRId64 " of them ", d->dead_host);
    else
        buffer_append_string(sentence, d->dead > 1 ? "they " : "it ");
    buffer_append_string(sentence, d->dead_host > 1 ? "are of the host"
                                                    : "is of the host");
    buffer_printf(sentence,
                  " and never deleted: `moontide sagas show %s ID` tells what "
                  "is awaited, and confirm takes it as done",
                  d->type);
}

/* They are tried again by themselves, while they are fired at all. */
static void failed_problem(const struct status_report *report,
                           const struct status_deadlines *d,
                           struct buffer *sentence)
{
    const struct status_deadline_failure *last = &d->last_failed;
    char at[CLOCK_TEXT_SIZE];

    buffer_printf(sentence, "saga '%s' has ", d->type);
    status_word_count(sentence, d->failed, "failed deadline");
    if (last->saga != NULL) {
        buffer_printf(sentence, ", the last of them '%s' of saga '%s'",
                      last->name, last->saga);
        if (last->next_at > report->deadline_us) {
            clock_format(last->next_at, at);
            buffer_printf(sentence, ", tried again at %s", at);
        } else {
            buffer_append_string(sentence, ", which is due again");
        }
        buffer_append_string(sentence, ", after ");
        status_word_count(sentence, last->attempts, "attempt");
        buffer_printf(sentence, ": %s", last->reason);
    }
    buffer_printf(sentence,
                  "; `moontide deadlines list %s --status FAILED` lists them",
                  d->type);
}

void status_deadlines_problems(struct status_report *report)
{
    struct buffer sentence = BUFFER_EMPTY;

    for (size_t i = 0; i < report->ndeadlines; i++) {
        const struct status_deadlines *d = &report->deadlines[i];

        if (d->dead > 0) {
            dead_problem(d, &sentence);
            status_word_keep(&report->arena, &report->problems,
                             &report->nproblems, &sentence);
        }
        if (d->failed > 0) {
            failed_problem(report, d, &sentence);
            status_word_keep(&report->arena, &report->problems,
                             &report->nproblems, &sentence);
        }
        if (d->overdue > 0) {
            overdue_problem(report, d, &sentence);
            status_word_keep(&report->arena, &report->problems,
                             &report->nproblems, &sentence);
        }
    }
    buffer_free(&sentence);
}
