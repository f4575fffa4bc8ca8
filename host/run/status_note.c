#include "run/status_note.h"

#include "consumer/registry.h"
#include "run/status_declaration.h"
#include "run/status_word.h"

#include <inttypes.h>

static void replay_note(const struct status_consumer *consumer,
                        struct buffer *sentence)
{
    if (consumer->replay_through == 0)
        return;
    buffer_printf(sentence,
                  "%s '%s' replays its history: %" PRId64 " %%, position "
                  "%" PRId64 " of %" PRId64,
                  consumer->type, consumer->name,
                  status_replay_percent(consumer), consumer->position,
                  consumer->replay_through);
    if (!status_word_is_in(consumer, CONSUMER_RUNNING)) {
        buffer_printf(sentence, "; it waits while it is %s", consumer->state);
    } else if (consumer->left_us != STATUS_UNKNOWN) {
        buffer_append_string(sentence, ", about ");
        status_word_age(sentence, consumer->left_us + CLOCK_SECOND - 1);
        buffer_append_string(sentence, " left");
    } else if (consumer->rate >= 0) {
        buffer_append_string(sentence,
                             "; it did not move while this was looked at");
    }
}

static void incomplete_note(const struct status_consumer *consumer,
                            struct buffer *sentence)
{
    if (consumer->incomplete_through == 0)
        return;
    buffer_printf(sentence,
                  "%s '%s' is incomplete up to position %" PRId64
                  ": messages that it had not read were gone from its topic "
                  "when it went on",
                  consumer->type, consumer->name, consumer->incomplete_through);
}

static void pending_note(const struct status_report *report,
                         struct buffer *sentence)
{
    int64_t count = 0;

    for (size_t i = 0; i < report->npending; i++)
        count += report->pending[i].count;
    if (count > 0)
        buffer_printf(sentence,
                      "%" PRId64 " message%s staged in the outbox, and this "
                      "version sends none: a relay of your own has to",
                      count, count == 1 ? " is" : "s are");
}

void status_note_find(struct status_report *report)
{
    struct buffer sentence = BUFFER_EMPTY;
    static void (*const notes[])(const struct status_consumer *,
                                 struct buffer *) = {
        replay_note, status_declaration_note, incomplete_note};

    for (size_t i = 0; i < report->nconsumers; i++) {
        for (size_t n = 0; n < sizeof(notes) / sizeof(notes[0]); n++) {
            notes[n](&report->consumers[i], &sentence);
            if (sentence.len > 0)
                status_word_keep(&report->arena, &report->notes,
                                 &report->nnotes, &sentence);
        }
    }
    pending_note(report, &sentence);
    if (sentence.len > 0)
        status_word_keep(&report->arena, &report->notes, &report->nnotes,
                         &sentence);
    buffer_free(&sentence);
}

int64_t status_replay_percent(const struct status_consumer *consumer)
{
    if (consumer->replay_through <= 0)
        return 100;
    return (int64_t)(100.0 * (double)consumer->position /
                     (double)consumer->replay_through);
}
