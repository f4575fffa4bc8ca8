/*
 * Declared consumer -- a declaration of the scripts with the model and the
 * consumer that are at work for it. The host runs all of them; a verb opens
 * the one that it is about.
 */
#ifndef HOST_RUN_DECLARED_CONSUMER_H
#define HOST_RUN_DECLARED_CONSUMER_H

#include "consumer/consumer.h"
#include "run/application.h"

struct listener;
struct saga;
struct projection;
struct sql_projection;

/** Freed with declared_consumer_free. */
struct declared_consumer {
    const struct declaration *declaration;
    struct projection *projection; /* one of the three */
    struct sql_projection *sql_projection;
    struct listener *listener;
    struct saga *saga;
    struct consumer consumer;
};

/** What all consumers of the application share. */
struct consumer_env declared_consumer_env(const struct application *app);

/** The application must have scripts and a database; it and `env` are
 * borrowed. */
void declared_consumer_init(struct declared_consumer *declared,
                            struct application *app,
                            const struct consumer_env *env,
                            const struct declaration *declaration);
void declared_consumer_free(struct declared_consumer *declared);

/** The declaration of a name. USAGE when there is none, with the nearest name
 * that is declared. */
enum status declared_consumer_find(const struct application *app,
                                   const char *name,
                                   const struct declaration **declaration,
                                   struct diag *diag) MUST_CHECK;

#endif
