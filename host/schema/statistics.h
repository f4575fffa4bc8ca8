/*
 * Statistics -- what the planner knows of the host's tables. PostgreSQL looks
 * at a new table within a minute; until then it takes a page of 20,000 stored
 * events for some dozens, and reads and sorts all of them for each page.
 *
 * It asks the server to look, once at a start, where a table has grown much
 * since the last time; the servers that need no such look are left alone.
 */
#ifndef HOST_SCHEMA_STATISTICS_H
#define HOST_SCHEMA_STATISTICS_H

#include "db/db.h"
#include "schema/names.h"

/** A table that another session is working on, or that belongs to somebody
 * else, is left to the server. No transaction may be open. */
enum status statistics_refresh(struct db *db, const struct names *names,
                               struct diag *diag) MUST_CHECK;

#endif
