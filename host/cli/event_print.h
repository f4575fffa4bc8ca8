/*
 * Event print -- messages as lines: a table for people, NDJSON with --json,
 * and NDJSON as append takes it with --export.
 */
#ifndef HOST_CLI_EVENT_PRINT_H
#define HOST_CLI_EVENT_PRINT_H

#include "base/buffer.h"
#include "cli/cli.h"
#include "topic/event_page.h"

struct event_print {
    const struct cli *cli;
    bool exported;     /* NDJSON that append takes */
    bool headed;       /* the heading was printed */
    size_t type_width; /* columns so far; they only grow */
    size_t key_width;
    size_t terminal_width; /* 0: no terminal, lines are not cut */
    struct buffer line;
    struct buffer cell;
};

void event_print_start(struct event_print *print, const struct cli *cli);
void event_print_page(struct event_print *print, const struct event_page *page);
void event_print_end(struct event_print *print);

#endif
