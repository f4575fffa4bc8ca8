#include "run/status_compaction.h"

#include "topic/compaction.h"

/* Who keeps tombstones that might go otherwise. */
static enum status read_holder(struct application *app,
                               const struct compaction *topic,
                               struct arena *arena,
                               struct status_compaction *found,
                               struct diag *diag)
{
    struct compaction_holder holder;
    enum status status = compaction_slowest(
        app->db, app->catalog, buffer_text(&topic->source), &holder, diag);

    if (status == STATUS_OK && holder.found &&
        holder.position < topic->through) {
        found->holder_type = arena_string(arena, buffer_text(&holder.type));
        found->holder = arena_string(arena, buffer_text(&holder.name));
        found->holder_position = holder.position;
    }
    compaction_holder_free(&holder);
    return status;
}

static enum status read_topic(struct application *app,
                              const struct compaction *topic,
                              struct status_report *report, struct diag *diag)
{
    struct arena *arena = &report->arena;
    struct status_compaction found = {
        .topic = arena_string(arena, buffer_text(&topic->source)),
        .through = topic->through,
        .mark = topic->mark,
    };
    enum status status = compaction_waiting(app->db, app->catalog, topic,
                                            &found.waiting_since, diag);

    if (status == STATUS_OK && app->settings->tombstones_us > 0)
        status = read_holder(app, topic, arena, &found, diag);
    if (status != STATUS_OK)
        return status;
    report->compactions = arena_grow(arena, report->compactions,
                                     report->ncompactions,
                                     sizeof(*report->compactions));
    report->compactions[report->ncompactions++] = found;
    return STATUS_OK;
}

enum status status_compaction_read(struct application *app,
                                   struct status_report *report,
                                   struct diag *diag)
{
    struct compaction topic = {.through = 0};
    bool found = true;
    enum status status = STATUS_OK;

    while (status == STATUS_OK && found) {
        status = compaction_next(app->db, app->catalog, &topic, &found, diag);
        if (status == STATUS_OK && found)
            status = read_topic(app, &topic, report, diag);
    }
    compaction_free(&topic);
    return status;
}
