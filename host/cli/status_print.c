#include "cli/status_print.h"

#include "cli/output.h"
#include "run/script_version.h"

#include <inttypes.h>

#define COLUMNS_MAX 8
#define ERROR_CHARS                                                            \
    60 /* of a reason in the table; `status CONSUMER` has all                  \
        */

static void print_problems(FILE *out, bool color,
                           const struct status_report *report)
{
    struct buffer line = BUFFER_EMPTY;

    for (size_t i = 0; i < report->nproblems; i++) {
        buffer_clear(&line);
        buffer_append_string(&line, color ? "\033[1;31mproblem:\033[0m "
                                          : "problem: ");
        output_safe(&line, text_of(report->problems[i]));
        fprintf(out, "%s\n", line.data);
    }
    buffer_free(&line);
}

static void print_notes(FILE *out, const struct status_report *report)
{
    struct buffer line = BUFFER_EMPTY;

    for (size_t i = 0; i < report->nnotes; i++) {
        buffer_clear(&line);
        buffer_append_string(&line, "note: ");
        output_safe(&line, text_of(report->notes[i]));
        fprintf(out, "%s\n", line.data);
    }
    buffer_free(&line);
}

static void print_topics(FILE *out, bool color,
                         const struct status_report *report)
{
    static const char *const headings[] = {"topic", ">mark", ">end", NULL};
    struct output_table table;

    output_table_begin(&table, headings, color);
    for (size_t i = 0; i < report->ntopics; i++) {
        output_cell_string(&table, report->topics[i].name);
        output_cell_int64(&table, report->topics[i].mark);
        output_cell_int64(&table, report->topics[i].end);
    }
    output_table_end(&table, out);
}

static void print_lag(struct output_table *table,
                      const struct status_consumer *consumer)
{
    struct buffer cell = BUFFER_EMPTY;

    if (consumer->lag == STATUS_UNKNOWN) {
        output_cell_string(table, "?");
        output_cell_string(table, "?");
        return;
    }
    output_grouped(&cell, consumer->lag);
    if (consumer->lag >= STATUS_LAG_LIMIT)
        buffer_append_char(&cell, '+');
    output_cell(table, buffer_text(&cell));
    buffer_clear(&cell);
    if (consumer->lag > 0)
        output_duration(&cell, consumer->lag_us);
    else
        buffer_append_char(&cell, '-');
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

/* "2 FAILED (3 min 5 s), 5 WAITING (2 s)": with the age of the oldest. */
static void print_undelivered(struct output_table *table,
                              const struct status_report *report,
                              const struct status_consumer *consumer)
{
    struct buffer cell = BUFFER_EMPTY;

    for (size_t i = 0; i < consumer->nundelivered; i++) {
        const struct status_undelivered *u = &consumer->undelivered[i];

        bool dead = strncmp(u->status, "DEAD", 4) == 0;

        buffer_printf(&cell, "%s%" PRId64 " %s", i > 0 ? ", " : "",
                      dead ? u->failed : u->count, u->status);
        if (dead && u->count > u->failed)
            buffer_printf(&cell, " and %" PRId64 " behind",
                          u->count - u->failed);
        buffer_append_string(&cell, " (");
        output_duration(&cell, report->now_us - u->oldest_at);
        buffer_append_char(&cell, ')');
    }
    if (consumer->nundelivered == 0)
        buffer_append_char(&cell, '-');
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

static void print_state(struct output_table *table,
                        const struct status_consumer *consumer)
{
    struct buffer cell = BUFFER_EMPTY;

    buffer_append_string(&cell, consumer->state);
    if (consumer->replay_through != 0)
        buffer_printf(&cell, ", replays %" PRId64 " %%",
                      status_replay_percent(consumer));
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

static void print_rate(struct output_table *table,
                       const struct status_consumer *consumer)
{
    struct buffer cell = BUFFER_EMPTY;

    if (consumer->rate < 0)
        buffer_append_char(&cell, '?');
    else
        buffer_printf(&cell, "%.0f/s", consumer->rate);
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

/* NULL: none. */
static void print_error(struct output_table *table, const char *error)
{
    struct text reason = text_of(error);
    struct buffer cell = BUFFER_EMPTY;
    size_t shown;

    if (error == NULL) {
        output_cell_string(table, "-");
        return;
    }
    shown = text_utf8_prefix_chars(reason, ERROR_CHARS);
    buffer_append(&cell, reason.data, shown);
    if (shown < reason.len)
        buffer_append_string(&cell, "...");
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

static void print_consumers(FILE *out, bool color,
                            const struct status_report *report)
{
    const char *headings[COLUMNS_MAX + 1] = {"consumer", "state", ">position",
                                             ">lag", ">behind"};
    size_t n = 5;
    bool rated = false, failed = false;
    struct output_table table;

    for (size_t i = 0; i < report->nconsumers; i++) {
        rated = rated || report->consumers[i].rate >= 0;
        failed = failed || report->consumers[i].failure.position != 0;
    }
    if (rated)
        headings[n++] = ">rate";
    if (failed)
        headings[n++] = "last error";
    headings[n++] = "undelivered";
    output_table_begin(&table, headings, color);
    for (size_t i = 0; i < report->nconsumers; i++) {
        const struct status_consumer *consumer = &report->consumers[i];

        output_cell_string(&table, consumer->name);
        print_state(&table, consumer);
        output_cell_int64(&table, consumer->position);
        print_lag(&table, consumer);
        if (rated)
            print_rate(&table, consumer);
        if (failed)
            print_error(&table, consumer->failure.position != 0
                                    ? consumer->failure.reason
                                    : NULL);
        print_undelivered(&table, report, consumer);
    }
    output_table_end(&table, out);
}

/* What lies dead says more than what is tried again. */
static const char *last_error(const struct status_deadlines *d)
{
    return d->last_dead.saga != NULL ? d->last_dead.reason
                                     : d->last_failed.reason;
}

static void print_deadlines(FILE *out, bool color,
                            const struct status_report *report)
{
    const char *headings[] = {"saga",     ">deadlines", ">failed", ">dead",
                              ">overdue", "next at",    NULL,      NULL};
    struct output_table table;
    char at[CLOCK_TEXT_SIZE];
    bool failed = false;

    if (report->ndeadlines == 0)
        return;
    for (size_t i = 0; i < report->ndeadlines; i++)
        failed = failed || last_error(&report->deadlines[i]) != NULL;
    if (failed)
        headings[6] = "last error";
    fputc('\n', out);
    output_table_begin(&table, headings, color);
    for (size_t i = 0; i < report->ndeadlines; i++) {
        const struct status_deadlines *d = &report->deadlines[i];

        output_cell_string(&table, d->type);
        output_cell_int64(&table, d->count);
        output_cell_int64(&table, d->failed);
        output_cell_int64(&table, d->dead);
        output_cell_int64(&table, d->overdue);
        if (d->next_at != 0)
            clock_format(d->next_at, at);
        output_cell_string(&table, d->next_at != 0 ? at : "");
        if (failed)
            print_error(&table, last_error(d));
    }
    output_table_end(&table, out);
}

static void print_pending(FILE *out, bool color,
                          const struct status_report *report)
{
    static const char *const headings[] = {"publisher", ">staged", ">oldest",
                                           NULL};
    struct output_table table;

    if (report->npending == 0)
        return;
    fputc('\n', out);
    output_table_begin(&table, headings, color);
    for (size_t i = 0; i < report->npending; i++) {
        const struct outbox_pending *pending = &report->pending[i];
        struct buffer age = BUFFER_EMPTY;

        output_duration(&age, report->now_us - pending->oldest_at);
        output_cell_string(&table, pending->route);
        output_cell_int64(&table, pending->count);
        output_cell(&table, buffer_text(&age));
        buffer_free(&age);
    }
    output_table_end(&table, out);
}

/* Of the one consumer that was asked for. */
static void print_owners(FILE *out, bool color,
                         const struct status_consumer *consumer)
{
    static const char *const headings[] = {"instance", "host", ">partitions",
                                           "which", NULL};
    struct output_table table;

    if (consumer->nowners == 0)
        return;
    fputc('\n', out);
    output_table_begin(&table, headings, color);
    for (size_t i = 0; i < consumer->nowners; i++) {
        const struct status_owner *owner = &consumer->owners[i];
        struct buffer which = BUFFER_EMPTY;

        for (size_t p = 0; p < owner->npartitions; p++)
            buffer_printf(&which, "%s%" PRId64, p > 0 ? " " : "",
                          owner->partitions[p]);
        output_cell_string(&table, owner->instance);
        output_cell_string(&table, owner->live ? owner->host : "has lapsed");
        output_cell_int64(&table, (int64_t)owner->npartitions);
        output_cell(&table, buffer_text(&which));
        buffer_free(&which);
    }
    output_table_end(&table, out);
}

static void print_failed(FILE *out, bool color,
                         const struct status_consumer *consumer)
{
    static const char *const headings[] = {
        ">position", "key", "type", "status", ">failures", "reason", NULL};
    struct output_table table;
    int64_t undelivered = 0;

    if (consumer->nfailed == 0)
        return;
    fputc('\n', out);
    output_table_begin(&table, headings, color);
    for (size_t i = 0; i < consumer->nfailed; i++) {
        const struct status_failure *failed = &consumer->failed[i];

        output_cell_int64(&table, failed->position);
        output_cell_string(&table, failed->key);
        output_cell_string(&table, failed->type);
        output_cell_string(&table, failed->status);
        output_cell_int64(&table, failed->count);
        output_cell_string(&table, failed->reason);
    }
    output_table_end(&table, out);
    for (size_t i = 0; i < consumer->nundelivered; i++)
        undelivered += consumer->undelivered[i].count;
    if (consumer->nfailed == STATUS_FAILED_LIMIT &&
        undelivered > STATUS_FAILED_LIMIT)
        fprintf(out, "the first %d of those that failed\n",
                STATUS_FAILED_LIMIT);
}

static void add_compaction(struct output_table *table,
                           const struct status_report *report,
                           const struct status_compaction *compaction)
{
    struct buffer cell = BUFFER_EMPTY;

    output_cell_string(table, compaction->topic);
    if (compaction->through < 0)
        output_cell_string(table, "never");
    else
        output_cell_int64(table, compaction->through);
    output_cell_int64(table, compaction->mark);
    if (compaction->waiting_since == 0)
        buffer_append_char(&cell, '-');
    else
        output_duration(&cell, report->now_us - compaction->waiting_since);
    output_cell(table, buffer_text(&cell));
    buffer_clear(&cell);
    if (compaction->holder == NULL)
        buffer_append_char(&cell, '-');
    else
        buffer_printf(&cell, "%s '%s' at %" PRId64, compaction->holder_type,
                      compaction->holder, compaction->holder_position);
    output_cell(table, buffer_text(&cell));
    buffer_free(&cell);
}

static void print_compactions(FILE *out, bool color,
                              const struct status_report *report)
{
    static const char *const headings[] = {
        "compaction", ">through",           ">mark",
        ">behind",    "tombstones held by", NULL};
    struct output_table table;

    if (report->ncompactions == 0)
        return;
    fputc('\n', out);
    output_table_begin(&table, headings, color);
    for (size_t i = 0; i < report->ncompactions; i++)
        add_compaction(&table, report, &report->compactions[i]);
    output_table_end(&table, out);
}

static void print_scripts(FILE *out, const struct status_report *report)
{
    for (size_t i = 0; i < report->nscripts; i++) {
        const struct status_script *script = &report->scripts[i];
        char since[CLOCK_TEXT_SIZE];
        struct buffer line = BUFFER_EMPTY;

        output_safe(&line, text_of(script->host));
        fprintf(out, "%sscripts %.*s run on %s since ", i == 0 ? "\n" : "",
                SCRIPT_VERSION_SHOWN, script->version, line.data);
        clock_format(script->since, since);
        fprintf(out, "%.19s\n", since);
        buffer_free(&line);
    }
}

void status_print(const struct status_report *report, bool alone, bool color,
                  FILE *out)
{
    print_problems(out, color, report);
    print_notes(out, report);
    if (report->nproblems + report->nnotes > 0)
        fputc('\n', out);
    print_topics(out, color, report);
    fputc('\n', out);
    if (report->nconsumers > 0)
        print_consumers(out, color, report);
    else
        fputs("no consumer\n", out);
    print_deadlines(out, color, report);
    if (!alone) {
        print_pending(out, color, report);
        print_compactions(out, color, report);
        print_scripts(out, report);
    }
    for (size_t i = 0; alone && i < report->nconsumers; i++) {
        print_owners(out, color, &report->consumers[i]);
        print_failed(out, color, &report->consumers[i]);
    }
}
