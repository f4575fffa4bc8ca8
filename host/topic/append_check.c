#include "topic/append.h"
#include "topic/capture.h"

#include "base/clock.h"
#include "base/json.h"
#include "topic/message.h"

#include <inttypes.h>

static enum status check_name(const char *field, struct text text,
                              size_t max_chars, struct diag *diag)
{
    size_t chars;

    if (text.data == NULL || text.len == 0)
        return diag_set(diag, STATUS_INVALID,
                        "%s is empty; it takes 1 to %zu characters", field,
                        max_chars);
    if (memchr(text.data, '\0', text.len) != NULL)
        return diag_set(diag, STATUS_INVALID,
                        "%s contains a NUL character, which no key may have",
                        field);
    if (!text_utf8_valid(text))
        return diag_set(diag, STATUS_INVALID, "%s is not valid UTF-8", field);
    if (text.len <= max_chars) /* no more characters than bytes */
        return STATUS_OK;
    chars = text_utf8_length(text);
    if (chars > max_chars)
        return diag_set(diag, STATUS_INVALID,
                        "%s has %zu characters; at most %zu are allowed", field,
                        chars, max_chars);
    return STATUS_OK;
}

static enum status check_size(const char *field, struct text text,
                              int64_t limit, struct diag *diag)
{
    if ((uint64_t)text.len > (uint64_t)limit)
        return diag_set(diag, STATUS_INVALID,
                        "%s has %zu bytes; limits.payload allows %" PRId64,
                        field, text.len, limit);
    return STATUS_OK;
}

static enum status check_json(const char *field, struct text text, bool checked,
                              int64_t limit, struct diag *diag)
{
    enum status status = check_size(field, text, limit, diag);

    if (status != STATUS_OK || checked)
        return status;
    status = json_check(text, NULL, diag);
    if (status != STATUS_OK)
        return diag_wrap(diag, "%s is not valid JSON", field);
    return STATUS_OK;
}

/* Of checked text; json_first would look for the end of the value. */
static bool is_object(struct text json)
{
    size_t i = 0;

    while (i < json.len && memchr(" \t\n\r", json.data[i], 4) != NULL)
        i++;
    return i < json.len && json.data[i] == '{';
}

static enum status check_documents(const struct append_event *event,
                                   int64_t payload_limit, struct diag *diag)
{
    enum status status;

    if (event->payload.data == NULL)
        return diag_set(diag, STATUS_INVALID, "payload is missing");
    status = check_json("payload", event->payload, event->checked,
                        payload_limit, diag);
    if (status != STATUS_OK || event->metadata.data == NULL)
        return status;
    status = check_json("metadata", event->metadata, event->checked,
                        payload_limit, diag);
    if (status != STATUS_OK)
        return status;
    if (!is_object(event->metadata))
        return diag_set(diag, STATUS_INVALID, "metadata is not a JSON object");
    return STATUS_OK;
}

/* What events of every topic have. */
static enum status check_event(const struct append_event *event,
                               int64_t payload_limit, struct diag *diag)
{
    enum status status = check_name("type", event->type, MESSAGE_TYPE_MAX,
                                    diag);

    if (status != STATUS_OK)
        return status;
    if (event->revision < 0)
        return diag_set(diag, STATUS_INVALID,
                        "revision is %d; it must not be negative",
                        event->revision);
    if (event->has_occurred_at &&
        (event->occurred_at < CLOCK_MIN || event->occurred_at > CLOCK_MAX))
        return diag_set(diag, STATUS_INVALID,
                        "occurred_at lies outside of the years 0 to 9999");
    return check_documents(event, payload_limit, diag);
}

enum status append_check(const struct append_event *event,
                         int64_t payload_limit, struct diag *diag)
{
    enum status status;

    status = check_name("aggregate_type", event->aggregate_type,
                        MESSAGE_TYPE_MAX, diag);
    if (status != STATUS_OK)
        return status;
    status = check_name("aggregate_id", event->aggregate_id, MESSAGE_KEY_MAX,
                        diag);
    if (status != STATUS_OK)
        return status;
    if (event->expect == APPEND_AT && event->expected < 0)
        return diag_set(diag, STATUS_INVALID,
                        "expected is %" PRId64
                        "; sequence numbers start at 0 (\"none\" means that "
                        "the stream has no event yet)",
                        event->expected);
    return check_event(event, payload_limit, diag);
}

enum status capture_check(const struct append_event *event,
                          int64_t payload_limit, struct diag *diag)
{
    enum status status = STATUS_OK;

    if (event->key.data != NULL)
        status = check_name("key", event->key, MESSAGE_KEY_MAX, diag);
    return status == STATUS_OK ? check_event(event, payload_limit, diag)
                               : status;
}
