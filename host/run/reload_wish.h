/*
 * Reload wish -- a reload that was asked for, by a saved file, a signal or an
 * operator, and who waits to hear what became of it. What is done about it is
 * run/reloader.h's.
 */
#ifndef HOST_RUN_RELOAD_WISH_H
#define HOST_RUN_RELOAD_WISH_H

#include "base/status.h"

#include <stdbool.h>

struct control_asker;  /* run/control.h */
struct reload_waiting; /* run/reload_wish.c */

/** All zero: nobody has asked. */
struct reload_wish {
    bool wanted;
    bool accept;
    bool told; /* somebody asked who wants to know, even if nothing changed */
    struct reload_waiting *waiting; /* owned until they are answered */
};

/** What became of it; strings are borrowed. */
struct reload_answer {
    enum status status;
    const char *version; /* that runs now */
    bool changed;
    const char *changes;
    const char *message; /* why not; empty: there is nothing to say */
};

/** The asker waits for the answer, which comes in any case. */
void reload_wish_wait(struct reload_wish *wish, struct control_asker *asker);

/** Answers all who wait. */
void reload_wish_answer(struct reload_wish *wish,
                        const struct reload_answer *answer);

#endif
