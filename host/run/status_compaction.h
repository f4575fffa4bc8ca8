/*
 * Status, the part about the compaction of read models' topics.
 */
#ifndef HOST_RUN_STATUS_COMPACTION_H
#define HOST_RUN_STATUS_COMPACTION_H

#include "run/status.h"

/** Fills report->compactions, in the caller's transaction. */
enum status status_compaction_read(struct application *app,
                                   struct status_report *report,
                                   struct diag *diag) MUST_CHECK;

#endif
