/*
 * Status scripts -- which version of the scripts the hosts run, and what they
 * have refused since. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_SCRIPTS_H
#define HOST_RUN_STATUS_SCRIPTS_H

#include "run/status.h"

/** Fills report->scripts; in the caller's transaction. */
enum status status_scripts_read(struct application *app,
                                struct status_report *report,
                                struct diag *diag) MUST_CHECK;

/** Adds a problem for each host that has refused what was saved. */
void status_scripts_problems(struct status_report *report);

#endif
