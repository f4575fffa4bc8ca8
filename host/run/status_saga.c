#include "run/status_saga.h"

#include "model/saga_declared.h"
#include "model/saga_steps.h"
#include "run/status_word.h"
#include "run/undeclared.h"

#include <inttypes.h>

struct reading {
    const struct status_request *request;
    struct status_report *report;
};

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    const struct reading *reading = arg;
    struct status_report *report = reading->report;
    const char *consumer = reading->request->consumer;

    (void)diag;
    if (consumer != NULL && !text_equal(db_get_text(row, 0), text_of(consumer)))
        return STATUS_OK;
    report->sagas = arena_grow(&report->arena, report->sagas, report->nsagas,
                               sizeof(*report->sagas));
    report->sagas[report->nsagas++] = (struct status_saga){
        .type = arena_string(&report->arena, db_get_text(row, 0)),
        .state = arena_string(&report->arena, db_get_text(row, 1)),
        .count = db_get_int64(row, 2),
        .example = arena_string(&report->arena, db_get_text(row, 3)),
    };
    return STATUS_OK;
}

/* It is told of by what is declared here; a host that runs may have loaded
 * something else. */
static enum status find_undeclared(struct application *app,
                                   const struct status_request *request,
                                   struct status_report *report,
                                   struct diag *diag)
{
    struct buffer missing = BUFFER_EMPTY, sentence = BUFFER_EMPTY;
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < request->ndeclarations; i++) {
        const struct declaration *d = &request->declarations[i];

        if (request->consumer != NULL &&
            strcmp(request->consumer, d->name) != 0)
            continue;
        buffer_clear(&missing);
        status = saga_declared_look(app->db, app->catalog, d, &missing, diag);
        if (status != STATUS_OK || missing.len == 0)
            continue;
        buffer_printf(&sentence,
                      "saga '%s' stands still in a host that has loaded "
                      "%s:%d: %s",
                      d->name, d->file, d->line, missing.data);
        status_word_keep(&report->arena, &report->problems, &report->nproblems,
                         &sentence);
    }
    buffer_free(&missing);
    buffer_free(&sentence);
    return status;
}

enum status status_saga_read(struct application *app,
                             const struct status_request *request,
                             struct status_report *report, struct diag *diag)
{
    struct reading reading = {request, report};
    enum status status = find_undeclared(app, request, report, diag);

    for (size_t i = 0; status == STATUS_OK && i < report->nconsumers; i++) {
        struct status_consumer *consumer = &report->consumers[i];

        if (!consumer->declared)
            status = undeclared_sagas(app, consumer->type, consumer->name,
                                      &consumer->sagas, diag);
    }
    if (status != STATUS_OK)
        return status;
    return db_rows_each(app->db,
                        catalog_sql(app->catalog, SQL_STATUS_SAGA_STEPS), NULL,
                        0, take_row, &reading, diag);
}

void status_saga_problems(struct status_report *report)
{
    struct buffer sentence = BUFFER_EMPTY;

    for (size_t i = 0; i < report->nsagas; i++) {
        const struct status_saga *saga = &report->sagas[i];
        bool stuck = strcmp(saga->state,
                            saga_step_state_word(SAGA_STEP_STUCK)) == 0;

        buffer_printf(
            &sentence,
            "saga '%s': %" PRId64 " %s%s no answer (%s), '%s' is of "
            "one: `moontide sagas show` tells of it, `retry` sends "
            "it again now, `confirm` takes it as done",
            saga->type, saga->count, stuck ? "compensation" : "command",
            saga->count == 1 ? " has" : "s have", saga->state, saga->example);
        status_word_keep(&report->arena, &report->problems, &report->nproblems,
                         &sentence);
    }
    buffer_free(&sentence);
}
