/*
 * The channel's reader under libFuzzer: whatever a worker writes, in whatever
 * pieces, gives messages that a worker may send, or is refused; a message that
 * is written again reads the same.
 */
#include "run/channel.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct channel_message *message)
{
    struct channel_reader reader = {.start = 0};
    struct buffer bytes = BUFFER_EMPTY;
    struct channel_message again;
    struct diag diag;
    bool found;

    channel_write(&bytes, message);
    channel_reader_add(&reader, bytes.data, bytes.len);
    if (channel_reader_next(&reader, CHANNEL_WORKER, &again, &found, &diag) !=
            STATUS_OK ||
        !found || again.type != message->type ||
        again.number != message->number ||
        !text_equal(again.text, message->text))
        abort();
    channel_reader_free(&reader);
    buffer_free(&bytes);
}

/* The first byte says how large the pieces are in which the rest comes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct channel_reader reader = {.start = 0};
    struct channel_message message;
    enum status status = STATUS_OK;
    struct diag diag;
    size_t piece;

    if (size == 0)
        return 0;
    piece = 1 + data[0];
    for (size_t at = 1; at < size && status == STATUS_OK; at += piece) {
        bool found = true;

        channel_reader_add(&reader, data + at,
                           size - at < piece ? size - at : piece);
        while (found && status == STATUS_OK) {
            status = channel_reader_next(&reader, CHANNEL_WORKER, &message,
                                         &found, &diag);
            if (status == STATUS_OK && found)
                check_again(&message);
        }
        /* what is kept is one message that has not come whole */
        if (reader.bytes.len - reader.start >
            CHANNEL_HEAD + CHANNEL_BODY_MIN + CHANNEL_TEXT_MAX + piece)
            abort();
    }
    if (status != STATUS_OK && status != STATUS_INVALID)
        abort();
    channel_reader_free(&reader);
    return 0;
}
