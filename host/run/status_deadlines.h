/*
 * Status deadlines -- what is set, overdue and dead among the deadlines of
 * sagas. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_DEADLINES_H
#define HOST_RUN_STATUS_DEADLINES_H

#include "run/status.h"

/** Fills report->deadlines, of request->consumer only when one is asked for; in
 * the caller's transaction. */
enum status status_deadlines_read(struct application *app,
                                  const struct status_request *request,
                                  struct status_report *report,
                                  struct diag *diag) MUST_CHECK;

/** Adds a problem for what lies dead, for what failed and is tried again, and
 * for what is overdue. */
void status_deadlines_problems(struct status_report *report);

#endif
