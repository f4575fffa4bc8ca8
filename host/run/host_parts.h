/*
 * Host parts -- what the files behind run/host.h share: the host as a struct,
 * the marks it moves (host_mark.c), what it looks at between batches
 * (host_watch.c), its runs, for good and to idle (host_run.c), and what it says
 * at the end of a run to idle (host_report.c). Nobody else includes this.
 */
#ifndef HOST_RUN_HOST_PARTS_H
#define HOST_RUN_HOST_PARTS_H

#include "consumer/flight.h"
#include "run/backoff.h"
#include "run/burden_watch.h"
#include "run/compactor.h"
#include "run/declared_consumer.h"
#include "run/host.h"
#include "run/host_lease.h"
#include "run/mark_watch.h"
#include "run/pace.h"
#include "run/retainer.h"
#include "run/saga_retainer.h"
#include "run/wake.h"
#include "topic/high_water_mark.h"
#include "topic/message.h"

/* A topic, or some that share a mark, that consumers read and that a host keeps
 * the mark of. */
struct host_topic {
    struct mark_watch watch; /* its topic is the name below */
    char *name;
    int64_t marked_at; /* monotonic: when the mark was looked at last */
};

/* One declared consumer and the model that applies for it. */
struct worker {
    struct declared_consumer declared;
    struct host_topic *topic; /* its source */
    bool started;             /* its consumer is registered and read */
    bool unswitched;          /* its own topic is to be switched on still */
    bool added;               /* by a reload: the version before had it not */
    struct diag trouble;      /* of its last step */
    bool stuck;               /* and that does not pass by itself */
    bool stuck_told;
    struct backoff still;   /* how long it stands still before it is tried */
    int64_t still_until;    /* monotonic */
    bool reload;            /* its row was changed by somebody */
    int64_t fenced;         /* times, since it was told */
    int64_t fenced_told_at; /* monotonic; 0: never */
};

/* Topics of read models that lack what was there before (host_fill.c). */
struct host_fill {
    const struct declaration **lists; /* of the scripts in use */
    size_t count;
    bool known;   /* else it is asked for */
    bool told;    /* that one cannot be filled */
    bool empties; /* in this round, one that was switched off before */
    bool left_told;
    int64_t rests_until; /* monotonic: from the last batch of that */
};

struct host {
    struct application *app;
    struct burden_watch burden; /* not when it is supervised */
    struct host_options options;
    struct consumer_env env;
    struct flight flight;
    struct host_lease lease;
    struct worker *workers;
    size_t nworkers;
    struct host_topic **topics; /* the event store first; they stay */
    size_t ntopics;
    struct host_fill fill;
    int64_t look_at;   /* monotonic: the marks can wait until then */
    struct pace pace;  /* of the looks when there is nothing to do */
    int64_t marked_at; /* monotonic: when they were looked at last */
    bool worked;       /* the newest round applied something */
    bool marks_wait;   /* ... so this one left a mark for the next to look at */
    struct retainer retainer;
    struct saga_retainer saga_retainer;
    struct compactor compactor;
    struct wake *wake;      /* while it runs and nobody else waits for it */
    struct backoff backoff; /* after conflicts and lost connections */
    int64_t refreshed_at;   /* monotonic */
    bool lose_answer;
    bool trouble_told;
    int64_t conflicted_at;       /* monotonic: first of a row; 0: none */
    struct host_progress before; /* of workers that were freed */
};

/** What does not pass by itself stops its consumer only: it is told once, and
 * others may have what it holds until it goes on. */
void host_stand_still(struct host *host, struct worker *worker);
/** What to do after a worker's step that ended with `status`, and `trouble`
 * filled: one that passes is the round's, and given back with whose it is; with
 * any other the worker stands still, and the round goes on. */
enum status host_bear(struct host *host, struct worker *worker,
                      enum status status, struct diag *diag) MUST_CHECK;
/** Lets those go on that have stood still for long enough, where what they
 * need to begin is there again. */
enum status host_end_standstills(struct host *host,
                                 struct diag *diag) MUST_CHECK;

/** Registers the consumer of one that did not start yet. */
enum status host_start_late(struct host *host, struct worker *worker,
                            struct diag *diag) MUST_CHECK;
/** Registers the consumers that did not start yet. What goes wrong is the
 * trouble of its worker, and tried again with the next rounds. */
void host_start_workers(struct host *host);
/** Ends them; what they have counted stays with the host. */
void host_free_workers(struct host *host);
/** Reads again where each consumer stands: memory runs ahead of what a lost
 * connection has left. */
enum status host_reload_all(struct host *host, struct diag *diag) MUST_CHECK;
/** Saves the checkpoints that are held in memory. */
enum status host_save(struct host *host, struct diag *diag) MUST_CHECK;

/** Waits so long, whatever is told meanwhile; a signal ends it early. */
void host_pause(struct host *host, int64_t us);

/** When there is something to do that nobody tells, in microseconds; `us` at
 * most. */
int64_t host_next_due(struct host *host, int64_t us);

void host_topics_init(struct host *host);
void host_topics_free(struct host *host);
/** The topic of that name, or the one that shares its mark; made when it is
 * first asked for, and there until the host ends. */
struct host_topic *host_topic_of(struct host *host, const char *source);

/** Switches on the topic of read models that a declaration reads, if it does.
 * *ready is false when that was switched off before and holds messages still,
 * of which a batch is deleted then, or when the consumer is to begin where it
 * ends and it is still filled: another round goes on.
 */
enum status host_switch_source(struct host *host,
                               const struct declaration *declaration,
                               bool *ready, struct diag *diag) MUST_CHECK;
/** The same once the declaration's consumer is subscribed: one that was
 * switched off at that moment is on again, and from here on nobody switches it
 * off. */
enum status host_keep_source(struct host *host,
                             const struct declaration *declaration, bool *ready,
                             struct diag *diag) MUST_CHECK;
/** Switches its own topic on, if it says so; *ready as above. */
enum status host_switch_own(struct host *host,
                            const struct declaration *declaration, bool *ready,
                            struct diag *diag) MUST_CHECK;
/** Whether this round met a topic that holds messages from before it was
 * switched off. With `rest` it waits until the next batch of them may be
 * deleted, for a few hundredths of a second at most. */
bool host_fill_empties(struct host *host, bool rest);
/** Fills one batch of read models in that were there before their topic was
 * switched on. */
enum status host_fill_topics(struct host *host, bool *worked,
                             struct diag *diag) MUST_CHECK;
/** Looks anew what is to be filled: others may have switched topics on, or
 * other scripts are in use. */
void host_fill_forget(struct host *host);

/** Moves the marks, unless that can wait, and tells who keeps them back. */
enum status host_advance_marks(struct host *host, struct diag *diag) MUST_CHECK;
/** Whether a mark lies behind its topic's end, as seen last. */
bool host_marks_are_behind(const struct host *host);
/** Whether another host is to move a mark that is behind its topic's end. */
bool host_marks_are_left(const struct host *host);
/** Tells it at once, where it was not told yet. */
void host_tell_blocked_now(struct host *host);

/** Deletes a batch of what the capture topic need not keep, and of completed
 * sagas, when that is due; unless a supervisor does that. */
enum status host_retain(struct host *host, bool busy,
                        struct diag *diag) MUST_CHECK;
/** Whether there was more than that. */
bool host_retains_more(const struct host *host);

/** Compacts a batch of a read model's topic, when that is due; unless a
 * supervisor does that. */
enum status host_compact(struct host *host, struct diag *diag) MUST_CHECK;

/** The same for all that is not young, at once. */
enum status host_compact_all(struct host *host,
                             const volatile sig_atomic_t *stop,
                             struct diag *diag) MUST_CHECK;

/** Whether it is time to look again what operators have changed; says so once
 * each time. */
bool host_refresh_is_due(struct host *host);

/** One statement for all consumers: those that somebody changed are marked for
 * a reload. */
enum status host_refresh_states(struct host *host,
                                struct diag *diag) MUST_CHECK;

/** Tells trouble of the whole host once, to whom the options name or else in
 * the log; NULL: it is over, which is told once, too. */
void host_tell_trouble(struct host *host, const struct diag *why);

/** How a run to idle ended for the consumers: FAILED when some are halted, BUSY
 * when messages wait for another attempt. */
enum status host_report(const struct host *host, struct diag *diag) MUST_CHECK;

#endif
