#include "run/declared_consumer.h"

#include "base/memory.h"
#include "model/listener.h"
#include "model/projection.h"
#include "model/saga.h"
#include "model/sql_projection.h"
#include "run/command_run.h"

/* A transaction's payloads together, about: memory stays bounded whatever
 * the size of messages. */
#define BATCH_BYTES (8 << 20)

struct consumer_env declared_consumer_env(const struct application *app)
{
    return (struct consumer_env){
        .db = app->db,
        .catalog = app->catalog,
        .names = &app->settings->names,
        .topics = app->topics,
        .ids = (struct uuid_source *)&app->ids,
        .clock = &app->clock,
        .log = &app->log,
        .partitions = app->settings->partitions,
        .batch = (size_t)app->settings->batch,
        .time_limit = app->settings->limit_time_us,
        .batch_bytes = BATCH_BYTES,
    };
}

/* What listeners and sagas may cause. */
static struct effects_options effects_of(struct application *app)
{
    return (struct effects_options){
        .capture = app->capture,
        .ids = &app->ids,
        .clock = &app->clock,
        .payload_limit = app->settings->limit_payload,
        .notify = app->settings->notify,
        .aggregates = command_options(app),
        .outgoing = outbox_outgoing(&app->outbox),
        .db = app->db,
    };
}

static struct applier make_applier(struct declared_consumer *declared,
                                   struct application *app,
                                   struct handler handler)
{
    const struct declaration *declaration = declared->declaration;
    const struct settings *settings = app->settings;

    switch (declaration->kind) {
    case DECLARATION_PROJECTION:
        declared->projection = projection_new(&(struct projection_options){
            .declaration = declaration,
            .handler = handler,
            .names = &settings->names,
            .catalog = app->catalog,
            .ids = &app->ids,
            .clock = &app->clock,
            .db = app->db,
            .partitions = settings->partitions,
            .cascade = settings->limit_cascade,
            .notify = settings->notify,
        });
        return projection_applier(declared->projection);
    case DECLARATION_SQL_PROJECTION:
    case DECLARATION_AGGREGATE: /* it is no consumer */
        break;
    case DECLARATION_LISTENER:
        declared->listener = listener_new(&(struct listener_options){
            .declaration = declaration,
            .handler = handler,
            .db = app->db,
            .effects = effects_of(app),
            .time_limit = settings->limit_time_us,
        });
        return listener_applier(declared->listener);
    case DECLARATION_SAGA:
        declared->saga = saga_new(&(struct saga_batch_options){
            .declaration = declaration,
            .handler = handler,
            .names = &settings->names,
            .catalog = app->catalog,
            .ids = &app->ids,
            .clock = &app->clock,
            .db = app->db,
            .effects = effects_of(app),
            .time_limit = settings->limit_time_us,
            .log = &app->log,
        });
        return saga_applier(declared->saga);
    }
    declared->sql_projection = sql_projection_new(declaration, handler, app->db,
                                                  NULL);
    return sql_projection_applier(declared->sql_projection);
}

void declared_consumer_init(struct declared_consumer *declared,
                            struct application *app,
                            const struct consumer_env *env,
                            const struct declaration *declaration)
{
    const struct handler handler = script_handler(app->script);
    const struct consumer_name name = {declaration_consumer_type(declaration),
                                       declaration->name};
    const struct event_filter filter = {
        .types = declaration->stored,
        .ntypes = declaration->nstored,
        .aggregates = declaration->aggregates,
        .naggregates = declaration->naggregates,
    };
    struct applier applier;

    *declared = (struct declared_consumer){.declaration = declaration};
    applier = make_applier(declared, app, handler);
    consumer_init(&declared->consumer, env, &name,
                  topics_find(&app->topics, declaration->source), &filter,
                  declaration->own_key, &declaration->policy, &applier);
    if (declaration_is_projection(declaration))
        consumer_declare(&declared->consumer, &declaration->fingerprint,
                         declaration->rebuild_on_change);
    declared->consumer.passes_gaps = declaration->passes_gaps;
    declared->consumer.starts_now = declaration->starts_now;
    declared->consumer.takes_keyless = declaration->kind ==
                                       DECLARATION_LISTENER;
}

void declared_consumer_free(struct declared_consumer *declared)
{
    consumer_free(&declared->consumer);
    projection_free(declared->projection);
    listener_free(declared->listener);
    saga_free(declared->saga);
    sql_projection_free(declared->sql_projection);
}

enum status declared_consumer_find(const struct application *app,
                                   const char *name,
                                   const struct declaration **declaration,
                                   struct diag *diag)
{
    size_t count;
    const struct declaration *list = script_declarations(app->script, &count);
    const char **names;
    const char *near;

    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) {
            *declaration = &list[i];
            return STATUS_OK;
        }
    names = mem_alloc((count + 1) * sizeof(*names));
    for (size_t i = 0; i < count; i++)
        names[i] = list[i].name;
    names[count] = NULL;
    near = text_nearest(name, names);
    mem_free(names);
    return diag_set(diag, STATUS_USAGE,
                    "no script declares a consumer '%.200s', so nothing can "
                    "rebuild it%s%s%s; `moontide check` lists what is "
                    "declared",
                    name, near != NULL ? "; did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?" : "");
}
