#include "model/aggregate_parts.h"

#include "base/json.h"
#include "base/json_member.h"
#include "consumer/deadline.h"
#include "model/command_results.h"
#include "topic/event_stream.h"

#include <inttypes.h>

/* A result is kept as {"rejected":{"reason":...,"details":...}} or
 * {"version":n,"events":{"0":[...]}} with the streams of the events, each as
 * {"aggregate_type","aggregate_id","sequence","count"} */

static void write_rejected(struct buffer *out,
                           const struct aggregate_outcome *outcome)
{
    bool first = true;

    buffer_append_string(out, "{\"rejected\":{");
    json_member_text(out, &first, "reason", outcome->reason);
    if (outcome->details.data != NULL) {
        json_member_raw(out, &first, "details", outcome->details);
    }
    buffer_append_string(out, "}}");
}

static void write_accepted(struct buffer *out,
                           const struct aggregate_outcome *outcome)
{
    buffer_printf(out, "{\"version\":%" PRId64 ",\"events\":{",
                  outcome->version);
    for (size_t i = 0; i < outcome->nevents; i++) {
        const struct aggregate_event *event = &outcome->events[i];
        bool first = true;

        buffer_printf(out, "%s\"%zu\":{", i > 0 ? "," : "", i);
        json_member_text(out, &first, "aggregate_type", event->aggregate_type);
        json_member_text(out, &first, "aggregate_id", event->aggregate_id);
        json_write_key(out, &first, "sequence");
        buffer_printf(out, "%" PRId64 "}", event->sequence);
    }
    buffer_append_string(out, "}}");
}

enum status aggregate_result_keep(struct dispatch *d, struct diag *diag)
{
    struct aggregates *a = d->aggregates;
    struct command_result result = {
        .id = d->id,
        .aggregate_type = text_of(d->declaration->name),
        .aggregate_id = d->command->id,
        .name = d->command->name,
    };
    int64_t now; /* how long it is kept is judged by the database's clock */
    enum status status = deadline_clock(d->db, a->options.clock, &now, diag);

    if (status != STATUS_OK)
        return status;
    buffer_clear(&a->json);
    if (d->outcome->rejected)
        write_rejected(&a->json, d->outcome);
    else
        write_accepted(&a->json, d->outcome);
    result.outcome = arena_copy(&a->arena, buffer_text(&a->json));
    return command_result_write(d->db, a->options.names, &result, now,
                                &a->arena, diag);
}

/* A member of a checked object. */
static bool member(struct json_value object, const char *name,
                   struct json_value *value)
{
    struct json_members members;
    struct text key;

    if (object.kind != JSON_OBJECT)
        return false;
    members = json_members_of(object);
    while (json_members_next(&members, NULL, &key, value))
        if (text_equal(key, text_of(name)))
            return true;
    return false;
}

static struct text member_text(struct arena *arena, struct json_value object,
                               const char *name)
{
    struct buffer text = BUFFER_EMPTY;
    struct json_value value;
    struct text kept;

    if (!member(object, name, &value) || value.kind != JSON_STRING)
        return TEXT_NONE;
    json_decode_string(value, &text);
    kept = arena_copy(arena, buffer_text(&text));
    buffer_free(&text);
    return kept;
}

static enum status reread_event(struct dispatch *d, struct json_value place,
                                struct aggregate_event *event,
                                struct diag *diag)
{
    struct aggregates *a = d->aggregates;
    struct json_value value;
    struct message *message;
    size_t count;
    enum status status;

    *event = (struct aggregate_event){
        .aggregate_type = member_text(&a->arena, place, "aggregate_type"),
        .aggregate_id = member_text(&a->arena, place, "aggregate_id"),
    };
    if (!member(place, "sequence", &value) ||
        !json_decode_int64(value, &event->sequence))
        return diag_set(diag, STATUS_PERMANENT,
                        "the result of a command cannot be read");
    status = event_stream_read(a->options.store, d->db, event->aggregate_type,
                               event->aggregate_id, event->sequence, 1,
                               &a->arena, &message, &count, diag);
    if (status != STATUS_OK)
        return status;
    if (count == 0 || message->sequence != event->sequence)
        return diag_set(diag, STATUS_PERMANENT,
                        "an event of a command that was done is gone");
    event->id = message->id;
    event->type = message->type;
    event->revision = message->revision;
    event->payload = message->payload;
    event->metadata = message->metadata;
    event->occurred_at = message->occurred_at;
    event->position = message->position;
    return STATUS_OK;
}

static enum status take_accepted(struct dispatch *d, struct json_value document,
                                 struct diag *diag)
{
    struct json_value events, value;
    struct json_members members;
    struct aggregate_event *list = NULL;
    struct text key;
    size_t count = 0;

    if (member(document, "version", &value))
        (void)json_decode_int64(value, &d->outcome->version);
    if (!member(document, "events", &events) || events.kind != JSON_OBJECT)
        return diag_set(diag, STATUS_PERMANENT,
                        "the result of a command cannot be read");
    members = json_members_of(events);
    while (json_members_next(&members, NULL, &key, &value)) {
        enum status status;

        list = arena_grow(&d->aggregates->arena, list, count, sizeof(*list));
        status = reread_event(d, value, &list[count++], diag);
        if (status != STATUS_OK)
            return status;
    }
    d->outcome->events = list;
    d->outcome->nevents = count;
    return STATUS_OK;
}

/* Looks for a result under the command's id. */
enum status aggregate_result_find(struct dispatch *d, bool *done,
                                  struct diag *diag)
{
    struct aggregates *a = d->aggregates;
    struct command_result result = {.id = d->id};
    struct json_value document, rejected, details;
    char id[UUID_TEXT_LEN + 1];
    enum status status;

    *done = false;
    status = command_result_read(d->db, a->options.catalog, &a->arena, &result,
                                 diag);
    if (status != STATUS_OK || result.outcome.data == NULL)
        return status;
    if (!text_equal(result.aggregate_type, text_of(d->declaration->name)) ||
        !text_equal(result.aggregate_id, d->command->id) ||
        !text_equal(result.name, d->command->name)) {
        uuid_format(&d->id, id);
        return diag_set(
            diag, STATUS_REFUSED,
            "command id %s stands for '" TEXT_FORMAT "' of " TEXT_FORMAT
            " \"" TEXT_FORMAT "\" already; another command takes another id",
            id, TEXT_ARGS(result.name), TEXT_ARGS(result.aggregate_type),
            TEXT_ARGS(result.aggregate_id));
    }
    *done = d->outcome->repeated = true;
    document = json_first(result.outcome);
    if (!member(document, "rejected", &rejected))
        return take_accepted(d, document, diag);
    d->outcome->rejected = true;
    d->outcome->reason = member_text(&a->arena, rejected, "reason");
    if (member(rejected, "details", &details))
        d->outcome->details = details.raw;
    return STATUS_OK;
}
