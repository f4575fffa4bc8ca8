#include "cli/cli.h"
#include "cli/event_print.h"
#include "cli/stop.h"
#include "run/application.h"
#include "topic/event_page.h"
#include "topic/high_water_mark.h"
#include "topic/read_model_switch.h"

#include "base/memory.h"

#include <time.h>

#define PAGE_MESSAGES 500
#define PAGE_BYTES    ((size_t)8 * 1024 * 1024)
#define FOLLOW_PAUSE  INT64_C(250000000) /* nanoseconds */

struct request {
    const char *topic;
    struct event_filter filter;
    struct text *types;
    int64_t after;
    int64_t limit; /* messages still wanted */
    bool follow;
};

static enum status read_request(const struct cli *cli, struct request *request,
                                struct diag *diag)
{
    const char *key = cli_value(cli, "key");
    const char *type;
    size_t ntypes = 0;
    enum status status;

    request->topic = cli_value(cli, "topic");
    if (request->topic == NULL)
        request->topic = TOPIC_EVENT_STORE;
    if (strcmp(request->topic, TOPIC_EVENT_STORE) != 0 &&
        strcmp(request->topic, TOPIC_EVENT_CAPTURE) != 0 &&
        read_model_topic_projection(request->topic) == NULL)
        return diag_set(diag, STATUS_USAGE,
                        "there is no topic '%s' to read; known: %s, %s, "
                        "and " TOPIC_READ_MODEL "PROJECTION",
                        request->topic, TOPIC_EVENT_STORE, TOPIC_EVENT_CAPTURE);
    if (strcmp(request->topic, TOPIC_EVENT_STORE) != 0 &&
        cli_given(cli, "aggregate"))
        return diag_set(diag, STATUS_USAGE,
                        "the topic %s has no aggregates; use --key",
                        request->topic);
    if (key == NULL)
        key = cli_value(cli, "aggregate");
    else if (cli_given(cli, "aggregate"))
        return diag_set(diag, STATUS_USAGE,
                        "--aggregate and --key are one: the key of an event "
                        "is its aggregate id");
    status = cli_integer(cli, "after", 0, 0, INT64_MAX, &request->after, diag);
    if (status != STATUS_OK)
        return status;
    status = cli_integer(cli, "limit", INT64_MAX, 1, INT64_MAX, &request->limit,
                         diag);
    if (status != STATUS_OK)
        return status;
    request->follow = cli_given(cli, "follow");
    while (cli_value_at(cli, "type", ntypes) != NULL)
        ntypes++;
    request->types = mem_alloc((ntypes + 1) * sizeof(*request->types));
    for (size_t i = 0; (type = cli_value_at(cli, "type", i)) != NULL; i++)
        request->types[i] = text_of(type);
    request->filter = (struct event_filter){
        .types = request->types,
        .ntypes = ntypes,
        .key = text_of(key),
    };
    return STATUS_OK;
}

/* Prints what lies behind request->after, up to the end of now. */
static enum status print_what_is_there(struct cli *cli, struct application *app,
                                       struct request *request,
                                       struct event_page *page,
                                       struct event_print *print,
                                       const volatile sig_atomic_t *stop,
                                       struct diag *diag)
{
    struct event_range range = {.byte_limit = PAGE_BYTES};
    struct topic *topic = topics_find(&app->topics, request->topic);
    enum status status;

    status = high_water_mark_look(app->db, app->catalog, request->topic,
                                  &range.upto, diag);
    if (status != STATUS_OK)
        return status;
    while (request->after < range.upto && request->limit > 0 && !*stop) {
        range.after = request->after;
        range.limit = request->limit < PAGE_MESSAGES ? (size_t)request->limit
                                                     : PAGE_MESSAGES;
        status = event_page_read(topic, app->db, &request->filter, &range, page,
                                 diag);
        if (status != STATUS_OK)
            return status;
        event_print_page(print, page);
        request->limit -= (int64_t)page->count;
        request->after = page->through;
        status = cli_flush(cli, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status print_events(struct cli *cli, struct application *app,
                                struct request *request, struct diag *diag)
{
    const volatile sig_atomic_t *stop = stop_on_signals();
    struct timespec pause = {.tv_nsec = FOLLOW_PAUSE};
    struct event_page page = {.arena = ARENA_EMPTY};
    struct event_print print;
    enum status status;

    event_print_start(&print, cli);
    for (;;) {
        status = print_what_is_there(cli, app, request, &page, &print, stop,
                                     diag);
        if (status != STATUS_OK || !request->follow || request->limit == 0 ||
            *stop)
            break;
        nanosleep(&pause, NULL);
    }
    event_print_end(&print);
    event_page_free(&page);
    return status;
}

/* Nothing is in a topic of read models that was never switched on. */
static enum status check_topic(struct application *app,
                               const struct request *request, struct diag *diag)
{
    const char *projection = read_model_topic_projection(request->topic);
    struct arena arena = ARENA_EMPTY;
    struct read_model_switch state = {.on = true};
    enum status status = STATUS_OK;

    if (projection != NULL)
        status = read_model_switch_read(app->db, app->catalog, projection,
                                        &arena, &state, diag);
    arena_free(&arena);
    if (status != STATUS_OK || state.on)
        return status;
    return diag_set(diag, STATUS_USAGE,
                    "the topic '%s' is not on: it is switched on by the "
                    "first consumer with that source, or by topic = true of "
                    "the projection, when a host runs it",
                    request->topic);
}

enum status cli_events(struct cli *cli, struct diag *diag)
{
    struct application app;
    struct request request = {.types = NULL};
    enum status status = read_request(cli, &request, diag);

    if (status != STATUS_OK)
        return status;
    status = cli_open(cli, APPLICATION_READ_ONLY, &app, diag);
    if (status == STATUS_OK) {
        status = check_topic(&app, &request, diag);
        if (status == STATUS_OK)
            status = print_events(cli, &app, &request, diag);
        application_close(&app);
    }
    mem_free(request.types);
    return status;
}
