/*
 * Status saga -- what orchestrated sagas await in vain. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_SAGA_H
#define HOST_RUN_STATUS_SAGA_H

#include "run/status.h"

/** Fills report->sagas, of the one consumer that is asked for, or of all. */
enum status status_saga_read(struct application *app,
                             const struct status_request *request,
                             struct status_report *report,
                             struct diag *diag) MUST_CHECK;

/** Adds a sentence for each to report->problems. */
void status_saga_problems(struct status_report *report);

#endif
