/*
 * Undeclared -- consumers that the database knows and the scripts do not
 * declare: their declarations were removed, or renamed, and under its new name
 * each began anew. Nothing runs them, and nobody would notice.
 */
#ifndef HOST_RUN_UNDECLARED_H
#define HOST_RUN_UNDECLARED_H

#include "run/application.h"

/** How many sagas of a type are under way; 0 for other consumers. In the
 * caller's transaction. */
enum status undeclared_sagas(struct application *app, const char *type,
                             const char *name, int64_t *count,
                             struct diag *diag) MUST_CHECK;

/** Appends what that means and what to do, behind "... declares it: nobody runs
 * it"; `sagas` of them are under way. */
void undeclared_remedy(const char *type, const char *name, int64_t sagas,
                       struct buffer *sentence);

/** A name more in a list of what is declared. */
void undeclared_add(struct buffer *declared, const char *name);

/** Warns in the log of each consumer that is not in the list. */
enum status undeclared_tell(struct application *app, struct text declared,
                            struct diag *diag) MUST_CHECK;
/** The same with what the application's scripts declare. */
enum status undeclared_tell_scripts(struct application *app,
                                    struct diag *diag) MUST_CHECK;

#endif
