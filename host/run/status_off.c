#include "run/status_off.h"

#include "base/clock.h"
#include "run/status_word.h"
#include "topic/message.h"
#include "topic/read_model_off.h"

static void take_topic(void *arg, const struct read_model_topic_row *row)
{
    struct status_report *report = arg;
    struct buffer sentence = BUFFER_EMPTY;
    char since[CLOCK_TEXT_SIZE];

    if (row->off_at == 0)
        return;
    clock_format(row->off_at, since);
    buffer_printf(
        &sentence,
        "topic " TOPIC_READ_MODEL "%.*s was switched off at %.19s "
        "and holds messages still: `moontide topics off " TOPIC_READ_MODEL
        "%.*s` deletes them, and so does the host that would switch "
        "it on again",
        TEXT_ARGS(row->projection), since, TEXT_ARGS(row->projection));
    status_word_keep(&report->arena, &report->notes, &report->nnotes,
                     &sentence);
    buffer_free(&sentence);
}

enum status status_off_read(struct application *app,
                            struct status_report *report, struct diag *diag)
{
    return read_model_off_list(app->db, app->catalog, take_topic, report, diag);
}
