#include "run/command_run.h"

#include "base/json.h"
#include "base/json_member.h"
#include "model/command_results.h"
#include "run/backoff.h"

#include <time.h>

/* Of many writers to one aggregate one wins each time: how often another one
 * loses says nothing, only how long. */
#define TRY_FOR     (10 * CLOCK_SECOND)
#define FIRST_PAUSE (CLOCK_SECOND / 200)
#define PAUSE_CAP   (CLOCK_SECOND / 4)

/* Results that one command takes along on their way out: twice what it
 * brings, so that they come to an end. */
#define EXPIRE_LIMIT 2

struct aggregates_options command_options(struct application *app)
{
    struct aggregates_options options = {
        .handler = script_handler(app->script),
        .dialect = db_dialect(app->db),
        .names = &app->settings->names,
        .catalog = app->catalog,
        .store = app->store,
        .ids = &app->ids,
        .clock = &app->clock,
        .log = &app->log,
        .payload_limit = app->settings->limit_payload,
    };

    options.declarations = script_aggregates(app->script, &options.count);
    return options;
}

enum status command_open(struct application *app,
                         struct aggregates **aggregates, struct diag *diag)
{
    const struct aggregates_options options = command_options(app);

    return aggregates_open(&options, aggregates, diag);
}

static enum status run_once(struct application *app,
                            struct aggregates *aggregates,
                            const struct aggregate_command *command,
                            struct aggregate_outcome *outcome,
                            struct diag *diag)
{
    struct failure failure;
    enum status status = db_begin(app->db, diag);

    if (status != STATUS_OK)
        return status;
    status = aggregate_dispatch(aggregates, app->db, command, outcome, &failure,
                                diag);
    if (status == STATUS_FAILED)
        diag_set(diag, STATUS_FAILED, "%s", failure.reason);
    if (status == STATUS_OK && !outcome->repeated)
        status = command_results_expire(app->db, app->catalog,
                                        clock_now(&app->clock) -
                                            app->settings->commands_keep_us,
                                        EXPIRE_LIMIT, NULL, diag);
    if (status == STATUS_OK)
        return db_commit(app->db, NULL, diag);
    db_rollback(app->db);
    return status;
}

static void pause_for(int64_t us)
{
    struct timespec time = {
        .tv_sec = us / CLOCK_SECOND,
        .tv_nsec = us % CLOCK_SECOND * 1000,
    };

    nanosleep(&time, NULL);
}

enum status command_run(struct application *app, struct aggregates *aggregates,
                        const struct aggregate_command *command,
                        struct aggregate_outcome *outcome, struct diag *diag)
{
    struct aggregate_command known = *command;
    struct backoff backoff = backoff_make(FIRST_PAUSE, PAUSE_CAP);
    int64_t started = clock_monotonic();
    bool lost = false;

    if (!known.has_command_id)
        known.command_id = uuid_v7(&app->ids, clock_now(&app->clock));
    known.has_command_id = true;
    for (;;) {
        enum status status = lost ? db_reopen(app->db, diag) : STATUS_OK;

        if (status == STATUS_OK) {
            status = run_once(app, aggregates, &known, outcome, diag);
            lost = status == STATUS_LOST;
        }
        if (!lost && status != STATUS_CONFLICT)
            return status;
        if (clock_monotonic() - started > TRY_FOR)
            return status;
        pause_for(backoff_next(&backoff));
    }
}

/* --- as JSON -------------------------------------------------------------- */

static void write_event(struct buffer *out, const struct aggregate_event *event)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_int64(out, &first, "position", event->position);
    json_member_id(out, &first, "id", &event->id);
    json_member_text(out, &first, "type", event->type);
    json_member_int64(out, &first, "revision", event->revision);
    json_member_text(out, &first, "aggregate_type", event->aggregate_type);
    json_member_text(out, &first, "aggregate_id", event->aggregate_id);
    json_member_int64(out, &first, "sequence", event->sequence);
    json_member_raw(out, &first, "payload", event->payload);
    json_member_raw(out, &first, "metadata", event->metadata);
    json_member_time(out, &first, "occurred_at", event->occurred_at);
    buffer_append_char(out, '}');
}

void command_json(const struct aggregate_outcome *outcome, struct buffer *out)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_text(out, &first, "outcome",
                     outcome->rejected ? TEXT_LITERAL("rejected")
                                       : TEXT_LITERAL("accepted"));
    json_member_id(out, &first, "command_id", &outcome->command_id);
    json_member_bool(out, &first, "repeated", outcome->repeated);
    if (outcome->rejected) {
        json_member_text(out, &first, "reason", outcome->reason);
        json_member_raw(out, &first, "details", outcome->details);
    } else {
        json_write_key(out, &first, "events");
        buffer_append_char(out, '[');
        for (size_t i = 0; i < outcome->nevents; i++) {
            buffer_append_string(out, i > 0 ? "," : "");
            write_event(out, &outcome->events[i]);
        }
        buffer_append_char(out, ']');
        json_member_int64_if(out, &first, "version", outcome->version >= 0,
                             outcome->version);
    }
    if (!outcome->repeated) {
        json_member_int64(out, &first, "loaded", outcome->loaded);
        json_member_int64_if(out, &first, "snapshot", outcome->snapshot >= 0,
                             outcome->snapshot);
    }
    buffer_append_char(out, '}');
}
