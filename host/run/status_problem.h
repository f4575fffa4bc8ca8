/*
 * Status problem -- what is wrong, as sentences that say what to do. Decides
 * from the report alone; part of status.c.
 */
#ifndef HOST_RUN_STATUS_PROBLEM_H
#define HOST_RUN_STATUS_PROBLEM_H

#include "run/status.h"

/** Fills report->problems, the worst first, and report->notes. */
void status_problem_find(const struct status_request *request,
                         struct status_report *report);

#endif
