#include "run/status_problem.h"

#include "consumer/failure.h"
#include "consumer/registry.h"
#include "consumer/undelivered.h"
#include "run/status_deadlines.h"
#include "run/status_declaration.h"
#include "run/status_note.h"
#include "run/status_rate.h"
#include "run/status_saga.h"
#include "run/status_scripts.h"
#include "run/status_word.h"
#include "run/undeclared.h"

#include <inttypes.h>

static void add_problem(struct status_report *report, struct buffer *sentence)
{
    status_word_keep(&report->arena, &report->problems, &report->nproblems,
                     sentence);
}

static bool is_halted_with(const struct status_consumer *consumer,
                           enum halt_reason reason)
{
    return strcmp(consumer->halt_reason, halt_reason_word(reason)) == 0;
}

/* What an operator can do about it. */
static void halted_remedy(const struct status_consumer *consumer,
                          struct buffer *sentence)
{
    if (is_halted_with(consumer, HALT_APPLY_ERROR))
        buffer_printf(sentence,
                      "; correct the handler, and a host that runs tries it "
                      "again once it is saved, or the data, and `moontide "
                      "resume %s` or the next start tries it again; with "
                      "--past it is skipped",
                      consumer->name);
    else if (is_halted_with(consumer, HALT_MISSING_HISTORY))
        buffer_printf(sentence,
                      ": its topic no longer holds messages that it has not "
                      "read; `moontide resume %s --accept` goes on without "
                      "them",
                      consumer->name);
    else if (is_halted_with(consumer, HALT_DECLARATION_CHANGED))
        status_declaration_halted(consumer, sentence);
}

static bool is_halting(const char *status)
{
    return strcmp(status, undelivered_status_word(UNDELIVERED_HALTED)) == 0;
}

/* Messages that halted it and are still there. */
static int64_t count_halting(const struct status_consumer *consumer)
{
    for (size_t i = 0; i < consumer->nundelivered; i++)
        if (is_halting(consumer->undelivered[i].status))
            return consumer->undelivered[i].failed;
    return 0;
}

static void halted_by(const struct status_consumer *consumer, int64_t halting,
                      struct buffer *sentence)
{
    const struct status_failure *failure = &consumer->failure;

    if (failure->position > 0 && is_halting(failure->status)) {
        buffer_printf(sentence, " by the message at position %" PRId64,
                      failure->position);
        if (failure->key[0] != '\0')
            buffer_printf(sentence, ", key '%s'", failure->key);
        buffer_printf(sentence, ": %s", failure->reason);
        halting--;
    }
    if (halting > 0)
        buffer_printf(sentence, "; %" PRId64 " more %s it, too", halting,
                      halting == 1 ? "halts" : "halt");
}

static void halted_problem(const struct status_consumer *consumer,
                           struct buffer *sentence)
{
    int64_t halting = count_halting(consumer);
    char since[CLOCK_TEXT_SIZE];

    clock_format(consumer->state_since, since);
    buffer_printf(sentence, "%s '%s' is halted since %s (%s)", consumer->type,
                  consumer->name, since, consumer->halt_reason);
    if (is_halted_with(consumer, HALT_APPLY_ERROR) && halting == 0) {
        buffer_printf(sentence,
                      "; what halted it was settled since: `moontide resume "
                      "%s` lets it go on",
                      consumer->name);
        return;
    }
    if (is_halted_with(consumer, HALT_APPLY_ERROR))
        halted_by(consumer, halting, sentence);
    halted_remedy(consumer, sentence);
}

static bool is_dead(const struct status_undelivered *undelivered)
{
    return strncmp(undelivered->status, "DEAD", 4) == 0;
}

/* Dead letters wait for an operator, all others for themselves. What lies dead
 * behind one goes with it. */
static int64_t count_dead(const struct status_consumer *consumer)
{
    int64_t dead = 0;

    for (size_t i = 0; i < consumer->nundelivered; i++)
        if (is_dead(&consumer->undelivered[i]))
            dead += consumer->undelivered[i].failed;
    return dead;
}

static int64_t count_behind(const struct status_consumer *consumer)
{
    int64_t behind = 0;

    for (size_t i = 0; i < consumer->nundelivered; i++)
        if (is_dead(&consumer->undelivered[i]))
            behind += consumer->undelivered[i].count -
                      consumer->undelivered[i].failed;
    return behind;
}

/* "2 FAILED, 5 WAITING, the oldest 3 min old": dead ones, or the others. */
static void list_undelivered(const struct status_report *report,
                             const struct status_consumer *consumer, bool dead,
                             struct buffer *out)
{
    int64_t oldest = INT64_MAX;
    bool any = false;

    for (size_t i = 0; i < consumer->nundelivered; i++) {
        const struct status_undelivered *u = &consumer->undelivered[i];

        if (is_dead(u) != dead)
            continue;
        buffer_printf(out, "%s%" PRId64 " %s", any ? ", " : "",
                      dead ? u->failed : u->count, u->status);
        any = true;
        if (u->oldest_at < oldest)
            oldest = u->oldest_at;
    }
    buffer_append_string(out, ", the oldest ");
    status_word_age(out, report->now_us - oldest);
    buffer_append_string(out, " old");
}

/* The last failure, when it is one of the dead letters, or of the others. */
static void last_failure(const struct status_consumer *consumer, bool dead,
                         struct buffer *out)
{
    const struct status_failure *failure = &consumer->failure;

    if (failure->position == 0 ||
        (strncmp(failure->status, "DEAD", 4) == 0) != dead)
        return;
    buffer_printf(out, "; the last failed at position %" PRId64,
                  failure->position);
    if (failure->key[0] != '\0')
        buffer_printf(out, ", key '%s'", failure->key);
    buffer_printf(out, ": %s", failure->reason);
}

static void dead_problem(const struct status_report *report,
                         const struct status_consumer *consumer,
                         struct buffer *sentence)
{
    int64_t behind = count_behind(consumer);

    buffer_printf(sentence, "%s '%s' has ", consumer->type, consumer->name);
    status_word_count(sentence, count_dead(consumer), "dead letter");
    buffer_append_string(sentence, ": ");
    list_undelivered(report, consumer, true, sentence);
    if (behind > 0) {
        buffer_append_string(sentence, "; ");
        status_word_count(sentence, behind, "message");
        buffer_printf(sentence, " %s behind", behind == 1 ? "lies" : "lie");
    }
    last_failure(consumer, true, sentence);
    buffer_printf(sentence,
                  "; `moontide dead-letters --consumer %s` lists them, "
                  "with retry they are tried again, with delete they are "
                  "skipped",
                  consumer->name);
}

static bool has_waiting(const struct status_consumer *consumer)
{
    for (size_t i = 0; i < consumer->nundelivered; i++)
        if (!is_dead(&consumer->undelivered[i]))
            return true;
    return false;
}

/* Unknown, and so no, while the scripts cannot be loaded. */
static bool is_undeclared(const struct status_request *request,
                          const struct status_consumer *consumer)
{
    return !consumer->declared && request->script_error == NULL;
}

/* When the next one is tried, in the words of an operator. */
static void next_attempt(const struct status_request *request,
                         const struct status_report *report,
                         const struct status_consumer *consumer,
                         struct buffer *out)
{
    char at[CLOCK_TEXT_SIZE];

    if (is_undeclared(request, consumer)) {
        buffer_append_string(out, "; none is tried while no script declares "
                                  "it");
    } else if (!status_word_is_in(consumer, CONSUMER_RUNNING)) {
        buffer_printf(out, "; none is tried while it is %s", consumer->state);
    } else if (consumer->retry_at_once ||
               (consumer->next_retry_at != 0 &&
                consumer->next_retry_at <= report->now_us)) {
        buffer_append_string(out, "; the next attempt is due: a host does it");
    } else if (consumer->next_retry_at != 0) {
        clock_format(consumer->next_retry_at, at);
        buffer_printf(out, "; the next attempt is at %s, in ", at);
        status_word_age(out, consumer->next_retry_at - report->now_us +
                                 CLOCK_SECOND - 1);
    }
}

static void waiting_problem(const struct status_request *request,
                            const struct status_report *report,
                            const struct status_consumer *consumer,
                            struct buffer *sentence)
{
    buffer_printf(sentence,
                  "%s '%s' has undelivered messages: ", consumer->type,
                  consumer->name);
    list_undelivered(report, consumer, false, sentence);
    next_attempt(request, report, consumer, sentence);
    last_failure(consumer, false, sentence);
}

/* The text of a reason that lies in the message, so that no key function was
 * asked; NULL: the function failed. */
static const char *reason_of_message(const struct status_consumer *consumer)
{
    static const char *const classes[] = {"revision: ", "decode: "};

    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        size_t len = strlen(classes[i]);

        if (strncmp(consumer->blocked_reason, classes[i], len) == 0)
            return consumer->blocked_reason + len;
    }
    return NULL;
}

static void blocked_problem(const struct status_consumer *consumer,
                            struct buffer *sentence)
{
    const char *reason = reason_of_message(consumer);

    /* nobody has asked its key function yet, or heard of it */
    if (strcmp(consumer->blocked_reason, FAILURE_UNTOLD) == 0 ||
        strcmp(consumer->blocked_reason, FAILURE_UNTOLD_PAGE) == 0)
        reason = "a host ended while it had this in hand, so it is tried by "
                 "itself, which is no fault yet";
    buffer_printf(sentence, "%s '%s' cannot %s ", consumer->type,
                  consumer->name, reason != NULL ? "read" : "tell the keys of");
    status_word_count(sentence, consumer->blocking, "message");
    buffer_append_string(sentence, " and applies nothing behind in ");
    status_word_count(sentence, consumer->blocked_partitions, "partition");
    buffer_printf(sentence,
                  ": %s, or `moontide dead-letters delete %" PRId64
                  " --consumer %s` skips the%s",
                  reason != NULL ? reason : "correct its key function",
                  consumer->blocked_by, consumer->name,
                  consumer->blocking == 1 ? " message" : " first");
}

static void paused_problem(const struct status_consumer *consumer,
                           struct buffer *sentence)
{
    char since[CLOCK_TEXT_SIZE];

    clock_format(consumer->state_since, since);
    buffer_printf(sentence,
                  "%s '%s' is paused since %s; `moontide resume %s` lets it go "
                  "on",
                  consumer->type, consumer->name, since, consumer->name);
}

static void rebuilding_problem(const struct status_consumer *consumer,
                               struct buffer *sentence)
{
    char since[CLOCK_TEXT_SIZE];

    clock_format(consumer->state_since, since);
    buffer_printf(sentence,
                  "%s '%s' is REBUILDING since %s and not reset yet; a host "
                  "that starts or `moontide rebuild %s` does it, `moontide "
                  "rebuild %s --cancel` takes it back",
                  consumer->type, consumer->name, since, consumer->name,
                  consumer->name);
}

static bool is_behind_a_mark(const struct status_report *report,
                             const struct status_consumer *consumer)
{
    for (size_t i = 0; i < report->ntopics; i++)
        if (strcmp(report->topics[i].name, consumer->source) == 0)
            return report->topics[i].blocked != NULL;
    return false;
}

static bool stands_still(const struct status_report *report,
                         const struct status_consumer *consumer)
{
    return consumer->still >= STATUS_LOOKS && consumer->blocking == 0 &&
           consumer->table_problem == NULL &&
           !is_behind_a_mark(report, consumer);
}

static void still_problem(const struct status_consumer *consumer,
                          struct buffer *sentence)
{
    buffer_printf(sentence, "%s '%s' has ", consumer->type, consumer->name);
    status_word_count(sentence, consumer->lag, "message");
    buffer_printf(sentence,
                  " to apply and does not move from position %" PRId64
                  ": does `moontide run` run?",
                  consumer->position);
}

static void rising_problem(const struct status_report *report,
                           const struct status_consumer *consumer,
                           struct buffer *sentence)
{
    buffer_printf(
        sentence,
        "%s '%s' falls behind: from %" PRId64 " to %" PRId64 " messages in ",
        consumer->type, consumer->name, consumer->rising_lag, consumer->lag);
    status_word_age(sentence, report->taken_us - consumer->rising_us);
    buffer_printf(sentence, ", it applies %.0f a second", consumer->rate);
}

/* What may be wrong with a consumer, the worst first. */
enum grade {
    GRADE_TABLE,
    GRADE_HALTED,
    GRADE_BLOCKED,
    GRADE_DEAD,
    GRADE_WILL_HALT,
    GRADE_REBUILDING,
    GRADE_WAITING,
    GRADE_PAUSED,
    GRADE_STILL,
    GRADE_RISING,
    GRADE_UNDECLARED,
    GRADES
};

static bool has_grade(const struct status_request *request,
                      const struct status_report *report,
                      const struct status_consumer *consumer, enum grade grade)
{
    switch (grade) {
    case GRADE_TABLE:
        return consumer->table_problem != NULL;
    case GRADE_HALTED:
        return status_word_is_in(consumer, CONSUMER_HALTED);
    case GRADE_BLOCKED:
        return consumer->blocking > 0;
    case GRADE_DEAD:
        return count_dead(consumer) > 0;
    case GRADE_WILL_HALT:
        return status_declaration_will_halt(consumer) &&
               !status_word_is_in(consumer, CONSUMER_HALTED);
    case GRADE_REBUILDING:
        return status_word_is_in(consumer, CONSUMER_REBUILDING);
    case GRADE_WAITING: /* of a halted one its own sentence tells */
        return has_waiting(consumer) &&
               !status_word_is_in(consumer, CONSUMER_HALTED);
    case GRADE_PAUSED:
        return status_word_is_in(consumer, CONSUMER_PAUSED);
    case GRADE_STILL:
        return stands_still(report, consumer);
    case GRADE_RISING:
        return consumer->rising >= STATUS_LOOKS &&
               !stands_still(report, consumer);
    default:
        return is_undeclared(request, consumer);
    }
}

static void consumer_problem(const struct status_request *request,
                             const struct status_report *report,
                             const struct status_consumer *consumer,
                             enum grade grade, struct buffer *sentence)
{
    switch (grade) {
    case GRADE_TABLE:
        buffer_append_string(sentence, consumer->table_problem);
        return;
    case GRADE_HALTED:
        halted_problem(consumer, sentence);
        return;
    case GRADE_BLOCKED:
        blocked_problem(consumer, sentence);
        return;
    case GRADE_DEAD:
        dead_problem(report, consumer, sentence);
        return;
    case GRADE_WILL_HALT:
        status_declaration_warn(consumer, sentence);
        return;
    case GRADE_REBUILDING:
        rebuilding_problem(consumer, sentence);
        return;
    case GRADE_WAITING:
        waiting_problem(request, report, consumer, sentence);
        return;
    case GRADE_PAUSED:
        paused_problem(consumer, sentence);
        return;
    case GRADE_STILL:
        still_problem(consumer, sentence);
        return;
    case GRADE_RISING:
        rising_problem(report, consumer, sentence);
        return;
    default:
        buffer_printf(sentence,
                      "%s '%s' is known to the database, but no script "
                      "declares it: nobody runs it",
                      consumer->type, consumer->name);
        undeclared_remedy(consumer->type, consumer->name, consumer->sagas,
                          sentence);
    }
}

void status_problem_find(const struct status_request *request,
                         struct status_report *report)
{
    struct buffer sentence = BUFFER_EMPTY;

    if (request->script_error != NULL) {
        buffer_printf(&sentence, "the scripts cannot be loaded: %s",
                      request->script_error);
        add_problem(report, &sentence);
    }
    status_scripts_problems(report);
    for (size_t i = 0; i < report->ntopics; i++) {
        const struct status_topic *topic = &report->topics[i];

        if (topic->end >= topic->mark)
            continue;
        buffer_printf(&sentence,
                      "topic '%s' ends at %" PRId64 ", below its high-water "
                      "mark %" PRId64 ": the database was restored from an "
                      "older copy; restore a newer one",
                      topic->name, topic->end, topic->mark);
        add_problem(report, &sentence);
    }
    for (size_t i = 0; i < report->ntopics; i++) {
        if (report->topics[i].blocked == NULL)
            continue;
        buffer_append_string(&sentence, report->topics[i].blocked);
        add_problem(report, &sentence);
    }
    if (report->burden != NULL) {
        buffer_append_string(&sentence, report->burden);
        add_problem(report, &sentence);
    }
    for (int grade = 0; grade < GRADES; grade++) {
        for (size_t i = 0; i < report->nconsumers; i++) {
            const struct status_consumer *consumer = &report->consumers[i];

            if (!has_grade(request, report, consumer, (enum grade)grade))
                continue;
            consumer_problem(request, report, consumer, (enum grade)grade,
                             &sentence);
            add_problem(report, &sentence);
        }
    }
    status_deadlines_problems(report);
    status_saga_problems(report);
    status_note_find(report);
    buffer_free(&sentence);
}
