#include "run/command_run.h"

#include "base/json.h"
#include "base/json_member.h"
#include "model/command_results.h"
#include "run/tries.h"

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

/* One command, until it is dispatched. */
struct running {
    struct application *app;
    struct aggregates *aggregates;
    struct aggregate_command command;
    struct aggregate_outcome *outcome;
};

static enum status expire_results(struct application *app, struct diag *diag)
{
    int64_t now;
    enum status status = application_clock(app, &now, diag);

    if (status != STATUS_OK)
        return status;
    return command_results_expire(app->db, app->catalog,
                                  now - app->settings->commands_keep_us,
                                  EXPIRE_LIMIT, NULL, diag);
}

static enum status run_once(void *arg, struct diag *diag)
{
    struct running *running = arg;
    struct application *app = running->app;
    struct failure failure;
    enum status status = db_begin(app->db, diag);

    if (status != STATUS_OK)
        return status;
    status = aggregate_dispatch(running->aggregates, app->db, &running->command,
                                running->outcome, &failure, diag);
    if (status == STATUS_FAILED)
        diag_set(diag, STATUS_FAILED, "%s", failure.reason);
    if (status == STATUS_OK && !running->outcome->repeated)
        status = expire_results(app, diag);
    if (status == STATUS_OK)
        return db_commit(app->db, NULL, diag);
    db_rollback(app->db);
    return status;
}

/* Its id is there before the first try, so that a later one finds what an
 * earlier one has written. */
enum status command_run(struct application *app, struct aggregates *aggregates,
                        const struct aggregate_command *command,
                        struct aggregate_outcome *outcome, struct diag *diag)
{
    struct running running = {app, aggregates, *command, outcome};

    if (!running.command.has_command_id)
        running.command.command_id = uuid_v7(&app->ids, clock_now(&app->clock));
    running.command.has_command_id = true;
    return tries_run(app->db, run_once, &running, diag);
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
