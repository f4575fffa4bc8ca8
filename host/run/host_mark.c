#include "base/memory.h"
#include "consumer/fire.h"
#include "run/host_parts.h"

/* How old a mark may be while there is enough to apply below it: for some
 * consumer, and for each. Others wait for it, and it waits for what is in
 * flight. */
#define MARK_PAUSE_US      (CLOCK_SECOND / 50)
#define MARK_PAUSE_LONG_US (CLOCK_SECOND / 2)

/* The mark of a topic that no consumer here reads is moved so often: other
 * programs look at it. */
#define UNREAD_PAUSE_US (CLOCK_SECOND / 2)

static struct host_topic *add_topic(struct host *host, const char *name)
{
    struct host_topic *topic = mem_alloc(sizeof(*topic));

    topic->name = mem_copy_text(name, strlen(name));
    topic->watch.topic = topic->name;
    topic->watch.detector = (struct mark_detector){
        .may_repair = host->app->settings->schema_create,
        .owner = host->env.instance,
        .lease_us = host->app->settings->lease_heartbeat_us,
    };
    host->topics = mem_grow(host->topics, host->ntopics + 1,
                            sizeof(struct host_topic *));
    host->topics[host->ntopics++] = topic;
    return topic;
}

void host_topics_init(struct host *host)
{
    (void)add_topic(host, TOPIC_EVENT_STORE);
    (void)add_topic(host, TOPIC_EVENT_CAPTURE);
}

void host_topics_free(struct host *host)
{
    for (size_t i = 0; i < host->ntopics; i++) {
        mem_free(host->topics[i]->name);
        mem_free(host->topics[i]);
    }
    mem_free(host->topics);
}

struct host_topic *host_topic_of(struct host *host, const char *source)
{
    const char *name = high_water_mark_of(host->app->db, source);

    for (size_t i = 0; i < host->ntopics; i++) {
        if (strcmp(host->topics[i]->name, name) == 0)
            return host->topics[i];
    }
    return add_topic(host, name);
}

bool host_marks_are_behind(const struct host *host)
{
    for (size_t i = 0; i < host->ntopics; i++) {
        const struct high_water_mark *mark = &host->topics[i]->watch.mark;

        if (mark->mark < mark->end)
            return true;
    }
    return false;
}

bool host_marks_are_left(const struct host *host)
{
    for (size_t i = 0; i < host->ntopics; i++) {
        const struct mark_watch *watch = &host->topics[i]->watch;

        if (watch->detector.left && watch->mark.end > watch->mark.mark)
            return true;
    }
    return false;
}

void host_tell_blocked_now(struct host *host)
{
    for (size_t i = 0; i < host->ntopics; i++) {
        const struct mark_watch *watch = &host->topics[i]->watch;

        if (watch->detector.blocked[0] != '\0' && watch->blocked_told == 0)
            log_write(&host->app->log, LOG_WARN,
                      &(struct log_about){.topic = watch->topic}, "%s",
                      watch->detector.blocked);
    }
}

/* While somebody still has a page below the known mark, a newer one is worth a
 * round trip only now and then. */
static bool mark_can_wait(const struct host *host,
                          const struct host_topic *topic)
{
    int64_t age = clock_monotonic() - topic->marked_at;
    bool some = false, each = true, read = false;

    if (clock_monotonic() < host->look_at)
        return true;
    for (size_t i = 0; i < host->nworkers; i++) {
        const struct consumer *c = &host->workers[i].declared.consumer;
        bool behind = consumer_is_behind(c, topic->watch.mark.mark) ||
                      fire_left(c) <= 0;

        if (host->workers[i].topic != topic)
            continue;
        read = true;
        some |= behind;
        each &= behind || c->row.state != CONSUMER_RUNNING;
    }
    if (!read && topic != host->topics[0])
        return topic->marked_at != 0 && age < UNREAD_PAUSE_US;
    return host->worked && some &&
           age < (each ? MARK_PAUSE_LONG_US : MARK_PAUSE_US);
}

enum status host_advance_marks(struct host *host, struct diag *diag)
{
    enum status status = STATUS_OK;

    host->marks_wait = false;
    for (size_t i = 0; i < host->ntopics && status == STATUS_OK; i++) {
        struct host_topic *topic = host->topics[i];
        bool undone;

        if (mark_can_wait(host, topic)) {
            host->marks_wait |= host->worked;
            continue;
        }
        status = flight_settle(&host->flight, &undone, diag);
        if (status != STATUS_OK)
            return status;
        if (host->options.supervised) /* who moves it is the supervisor */
            status = high_water_mark_read(host->app->db, host->app->catalog,
                                          topic->watch.topic,
                                          &topic->watch.mark, diag);
        else
            status = mark_watch_look(&topic->watch, host->app, diag);
        topic->marked_at = clock_monotonic();
        host->marked_at = topic->marked_at;
    }
    if (!host->options.supervised)
        burden_watch_look(&host->burden, host->app);
    return status;
}
