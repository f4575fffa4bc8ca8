/*
 * Notify -- tells hosts that wait for something to do (db/listener.h) that the
 * transaction has given them some, where the database can tell them. Elsewhere
 * they find out by themselves.
 */
#ifndef HOST_TOPIC_NOTIFY_H
#define HOST_TOPIC_NOTIFY_H

#include "db/catalog.h"

/** The query for listener_open; "" where there are no channels. */
struct text notify_channel(const struct db *db, const struct catalog *catalog);

/** Queues what tells them, within the transaction; any number of times is as
 * good as once. */
enum status notify_send(struct db *db, const struct catalog *catalog,
                        struct diag *diag) MUST_CHECK;

#endif
