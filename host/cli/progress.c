#include "cli/progress.h"

#include "base/clock.h"
#include "cli/output.h"

#define INTERVAL   (CLOCK_SECOND / 10)
#define CLEAR_LINE "\r\033[K"

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

void progress_end(struct progress *progress)
{
    if (!progress->visible)
        return;
    fputs(CLEAR_LINE, progress->out);
    fflush(progress->out);
    progress->visible = false;
}
