/*
 * Declared table -- the query table of a declaration: made and checked at a
 * start, and made anew by a rebuild when it has another shape.
 */
#ifndef HOST_RUN_DECLARED_TABLE_H
#define HOST_RUN_DECLARED_TABLE_H

#include "run/application.h"
#include "schema/query_table.h"

/** Makes or checks it, see query_table_prepare. */
enum status declared_table_prepare(struct application *app,
                                   const struct declaration *declaration,
                                   struct diag *diag) MUST_CHECK;

/** Whether a rebuild has to make it anew. CONFIG when that is no way. */
enum status declared_table_unfit(struct application *app,
                                 const struct declaration *declaration,
                                 bool *unfit, struct diag *diag) MUST_CHECK;

/** Drops one of another shape. */
enum status declared_table_drop(struct application *app,
                                const struct declaration *declaration,
                                struct diag *diag) MUST_CHECK;

/** Whether a start makes it anew by itself: on_change = "rebuild", its shape
 * is another one than the consumer was run with, and nothing else keeps the
 * consumer from running. */
enum status declared_table_on_change(struct application *app,
                                     const struct declaration *declaration,
                                     bool *anew, struct diag *diag) MUST_CHECK;

#endif
