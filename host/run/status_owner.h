/*
 * Status owner -- which instances hold the partitions of each consumer: one
 * statement for all of them. Part of status.c.
 */
#ifndef HOST_RUN_STATUS_OWNER_H
#define HOST_RUN_STATUS_OWNER_H

#include "run/status_consumer.h"

/** Fills the owners of the consumers in the report; in the caller's
 * transaction. */
enum status status_owners_read(struct status_reading *reading,
                               struct diag *diag) MUST_CHECK;

#endif
