#include "db/listener.h"

#include "db/db_core.h"
#include "db/listener_kind.h"

enum status listener_open(const char *url, struct text channel,
                          struct listener **listener, struct diag *diag)
{
    const struct db_driver *driver;
    enum status status;

    *listener = NULL;
    status = db_core_driver(url, &driver, diag);
    if (status != STATUS_OK || driver->listener == NULL)
        return status;
    return driver->listener->open(url, channel, listener, diag);
}

void listener_close(struct listener *listener)
{
    if (listener != NULL)
        listener->kind->close(listener);
}

int listener_fd(const struct listener *listener, short *events)
{
    return listener->kind->fd(listener, events);
}

bool listener_hears(const struct listener *listener)
{
    return listener->kind->hears(listener);
}

enum status listener_take(struct listener *listener, bool *heard,
                          struct diag *diag)
{
    *heard = false;
    return listener->kind->take(listener, heard, diag);
}
