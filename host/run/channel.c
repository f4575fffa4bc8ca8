#include "run/channel.h"

#include "base/digest.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

/* What a message of each type may be. */
struct channel_rule {
    enum channel_type type;
    enum channel_side from;
    int64_t min, max; /* of the number */
    size_t text_max;
};

static const struct channel_rule rules[] = {
    {CHANNEL_READY, CHANNEL_WORKER, 0, INT_MAX, 4096},
    {CHANNEL_FAILED, CHANNEL_WORKER, STATUS_STOPPED, STATUS_CONFLICT,
     DIAG_MESSAGE_SIZE},
    {CHANNEL_STOPPED, CHANNEL_WORKER, 0, 0, 0},
    {CHANNEL_SWITCHED, CHANNEL_WORKER, 0, 0, DIGEST_LEN},
    {CHANNEL_KEPT, CHANNEL_WORKER, STATUS_STOPPED, STATUS_CONFLICT,
     DIAG_MESSAGE_SIZE},
    {CHANNEL_LOADED, CHANNEL_WORKER, 0, 0, 0},
    {CHANNEL_TROUBLE, CHANNEL_WORKER, STATUS_STOPPED, STATUS_CONFLICT,
     DIAG_MESSAGE_SIZE},
    {CHANNEL_WELL, CHANNEL_WORKER, 0, 0, 0},
    {CHANNEL_STOP, CHANNEL_SUPERVISOR, 0, 0, 0},
    {CHANNEL_WAKE, CHANNEL_SUPERVISOR, 0, 0, 0},
    {CHANNEL_SWITCH, CHANNEL_SUPERVISOR, 0, CHANNEL_SWITCH_ALL, 256},
};

static const struct channel_rule *rule_of(int type)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if ((int)rules[i].type == type)
            return &rules[i];
    }
    return NULL;
}

/* --- integers ------------------------------------------------------------ */

static void put_integer(struct buffer *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buffer_append_char(out, (char)(value >> 8 * i & 0xff));
}

static uint64_t get_integer(const char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)at[i] << 8 * i;
    return value;
}

/* --- writing ------------------------------------------------------------- */

void channel_write(struct buffer *out, const struct channel_message *message)
{
    const struct channel_rule *rule = rule_of((int)message->type);
    struct text text = message->text;

    assert(rule != NULL);
    assert(message->number >= rule->min && message->number <= rule->max);
    if (text.len > rule->text_max)
        text.len = text_utf8_prefix(text, rule->text_max);
    put_integer(out, CHANNEL_BODY_MIN + text.len, CHANNEL_HEAD);
    buffer_append_char(out, (char)message->type);
    put_integer(out, (uint64_t)message->number, 8);
    buffer_append_text(out, text);
}

static enum status wait_for_room(int fd, struct diag *diag)
{
    struct pollfd ask = {.fd = fd, .events = POLLOUT};

    if (poll(&ask, 1, -1) < 0 && errno != EINTR)
        return diag_set(diag, STATUS_LOST, "cannot wait for a channel: %s",
                        strerror(errno));
    return STATUS_OK;
}

enum status channel_send(int fd, const struct channel_message *message,
                         struct diag *diag)
{
    struct buffer frame = BUFFER_EMPTY;
    enum status status = STATUS_OK;
    size_t sent = 0;

    channel_write(&frame, message);
    while (status == STATUS_OK && sent < frame.len) {
        ssize_t n = send(fd, frame.data + sent, frame.len - sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0)
            sent += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            status = wait_for_room(fd, diag);
        else if (errno != EINTR)
            status = diag_set(diag, STATUS_LOST,
                              "the other side of a channel is gone: %s",
                              strerror(errno));
    }
    buffer_free(&frame);
    return status;
}

/* --- reading ------------------------------------------------------------- */

void channel_reader_add(struct channel_reader *reader, const void *bytes,
                        size_t len)
{
    struct buffer *kept = &reader->bytes;

    if (reader->start > 0) {
        memmove(kept->data, kept->data + reader->start,
                kept->len - reader->start);
        kept->len -= reader->start;
        reader->start = 0;
    }
    buffer_append(kept, bytes, len);
}

static enum status read_body(const char *body, size_t len,
                             enum channel_side from,
                             struct channel_message *message, struct diag *diag)
{
    int type = (unsigned char)body[0];
    int64_t number = (int64_t)get_integer(body + 1, 8);
    struct text text = {body + CHANNEL_BODY_MIN, len - CHANNEL_BODY_MIN};
    const struct channel_rule *rule = rule_of(type);

    if (rule == NULL || rule->from != from)
        return diag_set(diag, STATUS_INVALID,
                        "a message of type %d, which nobody sends there", type);
    if (number < rule->min || number > rule->max)
        return diag_set(diag, STATUS_INVALID,
                        "a message of type %d with the number %lld, which lies "
                        "outside %lld to %lld",
                        type, (long long)number, (long long)rule->min,
                        (long long)rule->max);
    if (text.len > rule->text_max)
        return diag_set(
            diag, STATUS_INVALID,
            "a message of type %d with %zu bytes of text, where %zu "
            "are allowed",
            type, text.len, rule->text_max);
    if (!text_utf8_valid(text))
        return diag_set(diag, STATUS_INVALID,
                        "a message of type %d whose text is no UTF-8", type);
    *message = (struct channel_message){rule->type, number, text};
    return STATUS_OK;
}

enum status channel_reader_next(struct channel_reader *reader,
                                enum channel_side from,
                                struct channel_message *message, bool *found,
                                struct diag *diag)
{
    size_t left = reader->bytes.len - reader->start;
    const char *at;
    size_t len;

    *found = false;
    if (left < CHANNEL_HEAD)
        return STATUS_OK;
    at = reader->bytes.data + reader->start;
    len = (size_t)get_integer(at, CHANNEL_HEAD);
    if (len < CHANNEL_BODY_MIN || len > CHANNEL_BODY_MIN + CHANNEL_TEXT_MAX)
        return diag_set(diag, STATUS_INVALID, "a message of %zu bytes", len);
    if (left - CHANNEL_HEAD < len)
        return STATUS_OK;
    reader->start += CHANNEL_HEAD + len;
    *found = true;
    return read_body(at + CHANNEL_HEAD, len, from, message, diag);
}

void channel_reader_free(struct channel_reader *reader)
{
    buffer_free(&reader->bytes);
    reader->start = 0;
}
