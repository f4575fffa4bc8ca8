/*
 * Status, the part about topics of read models that were switched off and hold
 * messages still: whoever deleted them was interrupted, or is at it.
 */
#ifndef HOST_RUN_STATUS_OFF_H
#define HOST_RUN_STATUS_OFF_H

#include "run/status.h"

/** Adds a note for each, in the caller's transaction. */
enum status status_off_read(struct application *app,
                            struct status_report *report,
                            struct diag *diag) MUST_CHECK;

#endif
