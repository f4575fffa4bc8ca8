#include "cli/progress.h"

#include "base/clock.h"
#include "cli/output.h"

#define INTERVAL   (CLOCK_SECOND / 10)
#define CLEAR_LINE "\r\033[K"
#define BAR_WIDTH  30

void progress_start(struct progress *progress, const struct cli *cli,
                    const char *what)
{
    *progress = (struct progress){
        .out = cli->terminal_err && !cli->quiet ? cli->err : NULL,
        .what = what,
        .started_us = clock_monotonic(),
    };
}

void progress_show(struct progress *progress, int64_t done)
{
    struct buffer line = BUFFER_EMPTY;
    int64_t now;
    int64_t elapsed;

    if (progress->out == NULL)
        return;
    now = clock_monotonic();
    if (progress->visible && now - progress->shown_us < INTERVAL)
        return;
    progress->shown_us = now;
    progress->visible = true;
    elapsed = now - progress->started_us;

    buffer_append_string(&line, CLEAR_LINE);
    output_grouped(&line, done);
    buffer_printf(&line, " %s", progress->what);
    if (elapsed >= CLOCK_SECOND) {
        buffer_append_string(&line, ", ");
        output_grouped(&line, (int64_t)((double)done * (double)CLOCK_SECOND /
                                        (double)elapsed));
        buffer_append_string(&line, " a second");
    }
    fwrite(line.data, 1, line.len, progress->out);
    fflush(progress->out);
    buffer_free(&line);
}

/* Seconds for the rest, -1 while nobody can tell. */
static int64_t seconds_left(const struct progress *progress, int64_t done,
                            int64_t total, int64_t now)
{
    int64_t passed = done - progress->first;
    int64_t elapsed = now - progress->started_us;

    if (passed <= 0 || elapsed < CLOCK_SECOND)
        return -1;
    return (int64_t)((double)elapsed * (double)(total - done) / (double)passed /
                     (double)CLOCK_SECOND);
}

void progress_part(struct progress *progress, int64_t done, int64_t total)
{
    struct buffer line = BUFFER_EMPTY;
    int64_t now = clock_monotonic();
    int64_t left;
    int full = total > 0 ? (int)((double)done / (double)total * BAR_WIDTH)
                         : BAR_WIDTH;

    if (progress->out == NULL ||
        (progress->visible && now - progress->shown_us < INTERVAL))
        return;
    if (!progress->told)
        progress->first = done;
    progress->told = progress->visible = true;
    progress->shown_us = now;
    left = seconds_left(progress, done, total, now);

    buffer_append_string(&line, CLEAR_LINE "[");
    for (int i = 0; i < BAR_WIDTH; i++)
        buffer_append_char(&line, i < full ? '#' : '-');
    buffer_append_string(&line, "] ");
    output_grouped(&line, done);
    buffer_append_string(&line, " of ");
    output_grouped(&line, total);
    buffer_printf(&line, " %s", progress->what);
    if (left >= 0)
        buffer_printf(&line, ", about %lld s left", (long long)left);
    fwrite(line.data, 1, line.len, progress->out);
    fflush(progress->out);
    buffer_free(&line);
}

void progress_end(struct progress *progress)
{
    if (!progress->visible)
        return;
    fputs(CLEAR_LINE, progress->out);
    fflush(progress->out);
    progress->visible = false;
}
