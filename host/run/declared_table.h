/*
 * Declared table -- the tables of a declaration. The query table of a
 * projection is made and checked at a start, and made anew by a rebuild when it
 * has another shape. Of an SQL projection they are made by its own SQL, which
 * leaves alone what is there.
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

/** Whether it is there as it is declared: OK, or CONFIG with what is wrong,
 * which for a table that is *missing is left to the caller to say. */
enum status declared_table_fault(struct application *app,
                                 const struct declaration *declaration,
                                 bool *missing, struct diag *diag) MUST_CHECK;

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

/** Runs the SQL of `tables`, while schema.create is on. CONFIG, with the file
 * and what is wrong with it, when it cannot be run. */
enum status declared_table_script(struct application *app,
                                  const struct declaration *declaration,
                                  struct diag *diag) MUST_CHECK;

/** Whether what FAILED with `status` may be tried again: a table was not
 * there, and is made by now. Otherwise status and `diag` are as they were,
 * unless making it failed. */
bool declared_table_made(struct application *app,
                         const struct declaration *declaration,
                         enum status *status, struct diag *diag);

#endif
