/*
 * Needed rights -- what a host that runs these declarations does to which
 * table, asked of the database before the host is anything to anybody: no
 * instance, no member, no lease is there yet.
 */
#ifndef HOST_RUN_NEEDED_RIGHTS_H
#define HOST_RUN_NEEDED_RIGHTS_H

#include "run/application.h"

/** The host's own tables. REFUSED names user, table and right. */
enum status needed_rights_host(struct application *app,
                               const struct script *script,
                               struct diag *diag) MUST_CHECK;

/** The query tables of its projections, which are there by now. */
enum status needed_rights_read_models(struct application *app,
                                      const struct script *script,
                                      struct diag *diag) MUST_CHECK;

#endif
