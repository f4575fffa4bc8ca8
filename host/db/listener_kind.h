/*
 * Listener kind -- what a driver provides for db/listener.h, slot by slot the
 * same contracts. Only db/listener.c and drivers include this.
 */
#ifndef HOST_DB_LISTENER_KIND_H
#define HOST_DB_LISTENER_KIND_H

#include "db/listener.h"

struct listener_kind {
    enum status (*open)(const char *url, struct text channel,
                        struct listener **listener, struct diag *diag);
    void (*close)(struct listener *listener);
    int (*fd)(const struct listener *listener, short *events);
    bool (*hears)(const struct listener *listener);
    enum status (*take)(struct listener *listener, bool *heard,
                        struct diag *diag);
};

/* What every kind's own struct begins with. */
struct listener {
    const struct listener_kind *kind;
};

extern const struct listener_kind postgres_listener;
extern const struct listener_kind sqlite_listener;

#endif
