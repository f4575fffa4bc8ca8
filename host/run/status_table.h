/*
 * Status table -- consumers whose tables are gone, or lack what is declared: no
 * message of theirs fails by that, they stand still. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_TABLE_H
#define HOST_RUN_STATUS_TABLE_H

#include "run/status.h"

/** Fills table_problem of the report's consumers. Outside of a transaction. */
enum status status_tables_read(struct application *app,
                               const struct status_request *request,
                               struct status_report *report,
                               struct diag *diag) MUST_CHECK;

#endif
