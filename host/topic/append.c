#include "topic/append_call.h"
#include "topic/event_store_parts.h"

enum status append_events(struct event_store *store, struct db *db,
                          const struct append_options *options,
                          const struct append_event *events, size_t count,
                          struct append_result *results, size_t *bad,
                          struct diag *diag)
{
    struct append_call call = {
        .topic = &store->topic,
        .store = store,
        .db = db,
        .options = options,
        .events = events,
        .count = count,
        .results = results,
        .bad = bad,
    };
    enum status status = append_call_begin(&call, diag);

    if (status == STATUS_OK && call.nnew > 0)
        status = append_stream_number(&call, diag);
    return status == STATUS_OK ? append_call_write(&call, diag) : status;
}
