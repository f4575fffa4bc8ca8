/*
 * Listener -- hears that somebody may have committed, so that who waits for it
 * need not ask all the time: notifications of a server, changes of a
 * database's file. It says no more than "look": what is new is read as ever.
 * Whoever waits also looks by itself now and then, for what is heard may come
 * too early (a file is written before it is committed), or be lost.
 *
 * Nothing here waits; the owner does, with poll(2). A listener has a
 * connection of its own.
 */
#ifndef HOST_DB_LISTENER_H
#define HOST_DB_LISTENER_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

struct listener;

/**
 * Begins to listen. `channel` is the text of a query that gives the name to
 * listen to, where the database has channels; copied.
 * *listener is NULL, with OK, when databases of this URL tell nobody.
 * CONFIG, UNAVAILABLE: it cannot be begun.
 */
enum status listener_open(const char *url, struct text channel,
                          struct listener **listener,
                          struct diag *diag) MUST_CHECK;
void listener_close(struct listener *listener); /* NULL is allowed */

/** What to wait for, and the `events` of poll(2) with it. It may be another
 * one after each call of listener_take. */
int listener_fd(const struct listener *listener, short *events);

/** Whether everything is heard by now; until then who waits had better look
 * more often. */
bool listener_hears(const struct listener *listener);

/**
 * Takes what has come, without waiting; *heard says that there is something to
 * look at, and is also set once everything is heard. On anything but OK the
 * listener is of no use any more: close it, look, and open another.
 */
enum status listener_take(struct listener *listener, bool *heard,
                          struct diag *diag) MUST_CHECK;

#endif
