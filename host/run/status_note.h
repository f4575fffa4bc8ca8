/*
 * Status note -- what is worth knowing about consumers and not wrong: a replay
 * under way, older code, a gap in the history. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_NOTE_H
#define HOST_RUN_STATUS_NOTE_H

#include "run/status.h"

/** Fills report->notes. */
void status_note_find(struct status_report *report);

#endif
