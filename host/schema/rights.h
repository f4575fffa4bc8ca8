/*
 * Rights -- what the session's user may do to tables, asked before it is done:
 * a host that lacks a right would otherwise find out in the middle of its work.
 *
 * It looks, and changes nothing. What is needed, the caller says.
 */
#ifndef HOST_SCHEMA_RIGHTS_H
#define HOST_SCHEMA_RIGHTS_H

#include "db/db.h"

#define RIGHT_SELECT 1u
#define RIGHT_INSERT 2u
#define RIGHT_UPDATE 4u /* of a sequence both: to draw from it */
#define RIGHT_DELETE 8u

struct rights_wanted {
    const char *table; /* a checked identifier; it exists */
    unsigned rights;
};

/** REFUSED when one is lacking: the message names user, table and right. No
 * transaction may be open. */
enum status rights_check(struct db *db, const struct rights_wanted *wanted,
                         size_t count, struct diag *diag) MUST_CHECK;

#endif
