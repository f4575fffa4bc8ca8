/*
 * Operator -- what the operator verbs (pause, resume, unsubscribe,
 * dead-letters) have in common: the database opened without creating it, the
 * names that the scripts declare, and sentences and JSON of what changed.
 */
#ifndef HOST_CLI_OPERATOR_H
#define HOST_CLI_OPERATOR_H

#include "cli/cli.h"
#include "consumer/operate.h"
#include "run/application.h"

struct operator_session {
    struct application app;
    struct application scripts; /* open when `loaded` */
    bool loaded;
    const char **declared;
    const char **types;
    const char **sources;
    const struct fingerprint **fingerprints;
    struct operate_env env;
};

/** Opens with APPLICATION_ROWS or APPLICATION_READ_ONLY. Scripts that do not
 * load are no error: env.declared is NULL then. */
enum status operator_open(struct cli *cli, unsigned need,
                          struct operator_session *session,
                          struct diag *diag) MUST_CHECK;
void operator_close(struct operator_session *session);

/** Appends "3 messages" or "1 message". */
void operator_count(struct buffer *out, int64_t count, const char *thing);

/** Prints "TYPE 'NAME' " and the sentence, or why nothing changed; with --json
 * everything the result tells. */
void operator_print(struct cli *cli, const struct operate_result *result,
                    const char *sentence);

#endif
