#include "run/materialize.h"

#include "base/hash.h"
#include "base/memory.h"
#include "consumer/registry.h"
#include "consumer/skipped.h"
#include "model/read_model.h"
#include "run/state_diff.h"
#include "topic/event_page.h"
#include "topic/high_water_mark.h"
#include "topic/read_model_topic.h"

#include <stdarg.h>

#define PAGE_MESSAGES 5000
#define PAGE_BYTES    ((size_t)8 << 20)

#define SLOT 0 /* the one read model's */

struct materializer {
    struct application *app;
    const struct materialize_request *request;
    const struct declaration *declaration;
    struct handler handler;
    struct materialized *result;
    int partition;
    struct skips skips;
    bool replaying; /* a rebuild is under way */
    int64_t incomplete;
    /* the fold */
    struct buffer state; /* between two pages; valid when present */
    bool present;
    bool loaded; /* the slot holds it */
    bool found;  /* of the message in hand: it has the key */
    struct event_page page;
};

static PRINTF_LIKE(2, 3) const
    char *clause(struct materializer *m, const char *format, ...)
{
    struct buffer text = BUFFER_EMPTY;
    const char *copy;
    va_list args;

    va_start(args, format);
    buffer_vprintf(&text, format, args);
    va_end(args);
    copy = arena_string(&m->result->arena, buffer_text(&text));
    buffer_free(&text);
    return copy;
}

/* --- what is stored ------------------------------------------------------ */

static enum status take_stored(void *arg, struct text key, struct text state,
                               struct diag *diag)
{
    struct materialized *result = arg;

    (void)key;
    (void)diag;
    result->stored = arena_copy(&result->arena, state);
    return STATUS_OK;
}

static enum status take_progress(void *arg, struct db_rows *row,
                                 struct diag *diag)
{
    struct materializer *m = arg;

    (void)diag;
    if (!text_equal(db_get_text(row, 1), text_of(m->declaration->source)) ||
        db_get_int64(row, 2) != m->partition)
        return STATUS_OK;
    if (!db_is_null(row, 3))
        m->result->stored_position = db_get_int64(row, 3);
    m->replaying = !db_is_null(row, 4);
    if (!db_is_null(row, 5))
        m->incomplete = db_get_int64(row, 5);
    return STATUS_OK;
}

static enum status read_undelivered(struct materializer *m, const char *id,
                                    struct diag *diag)
{
    const struct db_value params[] = {
        db_string(id), db_string(m->declaration->source),
        db_text_value(m->request->key), db_integer(m->partition)};
    int64_t count = 0;
    bool found;
    enum status status = db_query_int64(
        m->app->db, catalog_sql(m->app->catalog, SQL_UNDELIVERED_OF_KEY),
        params, 4, &count, &found, diag);

    if (status == STATUS_OK && count > 0)
        m->result->incomparable = clause(
            m, "%lld of its messages could not be delivered yet",
            (long long)count);
    return status;
}

static enum status read_row(struct materializer *m, const char *id,
                            struct diag *diag)
{
    struct application *app = m->app;
    const char *key = arena_string(&m->result->arena, m->request->key);
    const struct read_model_request stored = {.declaration = m->declaration,
                                              .key = key};
    struct db_value param = db_string(id);
    enum status status = db_rows_each(
        app->db, catalog_sql(app->catalog, SQL_STATUS_PROGRESS), &param, 1,
        take_progress, m, diag);

    if (status == STATUS_OK)
        status = skips_read(app->db, app->catalog, id, m->declaration->source,
                            0, INT64_MAX, &m->skips, diag);
    if (status == STATUS_OK)
        status = read_undelivered(m, id, diag);
    if (status == STATUS_OK)
        status = read_model_read(app->db, &stored, take_stored, m->result,
                                 diag);
    return status;
}

/* All of it as of one moment. */
static enum status read_stored(struct materializer *m, struct diag *diag)
{
    struct application *app = m->app;
    const struct consumer_name name = {
        declaration_consumer_type(m->declaration), m->declaration->name};
    struct consumer_row row = {.exists = false};
    enum status status = db_begin_read(app->db, diag);

    if (status == STATUS_OK)
        status = registry_read(app->db, app->catalog, &name, &row, diag);
    if (status == STATUS_OK && row.exists)
        status = read_row(m, row.id, diag);
    db_rollback(app->db);
    if (status != STATUS_OK)
        return read_model_explain(app->db, m->declaration, row.exists, status,
                                  diag);
    if (!row.exists)
        m->result->incomparable =
            "no host has run the projection yet, or not since it was "
            "unsubscribed";
    else if (m->replaying || row.state == CONSUMER_REBUILDING)
        m->result->incomparable = "the projection is being rebuilt";
    return STATUS_OK;
}

/* --- the fold ------------------------------------------------------------ */

static enum status tell(const struct message *message, const char *what,
                        const struct failure *failure, enum status status,
                        struct diag *diag)
{
    if (status != STATUS_FAILED)
        return status;
    return diag_set(diag, STATUS_FAILED, "the message at position %lld %s: %s",
                    (long long)message->position, what, failure->reason);
}

static void take_key(void *arg, struct text key)
{
    struct materializer *m = arg;

    m->found |= text_equal(key, m->request->key);
}

static struct handler_call call_of(const struct materializer *m,
                                   const struct message *message)
{
    return (struct handler_call){
        .declaration = m->declaration,
        .message = message,
        .key = m->request->key,
        .partition = m->partition,
        .attempt = 1,
    };
}

static enum status find_keys(struct materializer *m,
                             const struct message *message, struct diag *diag)
{
    const struct handler_call call = call_of(m, message);
    struct failure failure;

    m->found = false;
    if (m->declaration->own_key)
        return tell(
            message, "does not tell its keys", &failure,
            m->handler.ops->keys(m->handler.code, &call, take_key, m, &failure),
            diag);
    if (message->key.data != NULL)
        take_key(m, message->key);
    return STATUS_OK;
}

static enum status load_state(struct materializer *m,
                              const struct handler_call *call,
                              struct failure *failure)
{
    if (m->loaded)
        return STATUS_OK;
    if (m->present)
        return m->handler.ops->state_decode(m->handler.code, call, SLOT,
                                            buffer_text(&m->state), failure);
    return m->handler.ops->state_initial(m->handler.code, call, SLOT, failure);
}

static enum status apply(struct materializer *m, const struct message *message,
                         struct diag *diag)
{
    const struct handler_call call = call_of(m, message);
    enum handler_outcome outcome;
    struct failure failure;
    enum status status = load_state(m, &call, &failure);

    m->loaded = m->present;
    if (status == STATUS_OK)
        status = m->handler.ops->apply_state(m->handler.code, &call, SLOT,
                                             &outcome, &failure, diag);
    if (status != STATUS_OK)
        return tell(message, "cannot be applied", &failure, status, diag);
    m->result->messages++;
    if (outcome == HANDLER_UNTOUCHED)
        return STATUS_OK;
    m->present = m->loaded = outcome == HANDLER_CHANGED;
    return STATUS_OK;
}

/* Takes the state out of the slot, for the page's other values end here. */
static enum status keep_state(struct materializer *m,
                              const struct message *message, struct diag *diag)
{
    const struct handler_call call = call_of(m, message);
    struct arena arena = ARENA_EMPTY;
    struct db_value *fields;
    struct failure failure;
    enum status status;

    if (!m->loaded)
        return STATUS_OK;
    fields = mem_alloc((m->declaration->nfields + 1) * sizeof(*fields));
    buffer_clear(&m->state);
    status = tell(message, "leaves a state that cannot be stored", &failure,
                  m->handler.ops->state_encode(m->handler.code, &call, SLOT,
                                               &m->state, fields, &arena,
                                               &failure),
                  diag);
    m->loaded = false;
    mem_free(fields);
    arena_free(&arena);
    return status;
}

static enum status fold_page(struct materializer *m, struct diag *diag)
{
    const struct message *last = NULL;
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < m->page.count; i++) {
        const struct message *message = &m->page.messages[i];

        if (skips_hold(&m->skips, message->position, TEXT_NONE) ||
            skips_hold(&m->skips, message->position, m->request->key))
            continue;
        status = find_keys(m, message, diag);
        if (status != STATUS_OK || !m->found)
            continue;
        last = message;
        status = apply(m, message, diag);
    }
    if (status == STATUS_OK && last != NULL)
        status = keep_state(m, last, diag);
    m->loaded = false;
    m->handler.ops->batch_end(m->handler.code);
    return status;
}

static enum status fold_range(struct materializer *m, struct topic *topic,
                              int64_t after, int64_t upto, struct diag *diag)
{
    const struct declaration *d = m->declaration;
    const struct event_filter filter = {
        .types = d->stored,
        .ntypes = d->nstored,
        .aggregates = d->aggregates,
        .naggregates = d->naggregates,
        .key = d->own_key ? TEXT_NONE : m->request->key,
    };
    struct event_range range = {.after = after,
                                .upto = upto,
                                .limit = PAGE_MESSAGES,
                                .byte_limit = PAGE_BYTES};
    enum status status = STATUS_OK;

    while (status == STATUS_OK && range.after < upto) {
        status = event_page_read(topic, m->app->db, &filter, &range, &m->page,
                                 diag);
        if (status == STATUS_OK)
            status = fold_page(m, diag);
        if (m->page.start > m->incomplete)
            m->incomplete = m->page.start;
        range.after = m->page.through;
        if (m->request->progress != NULL)
            m->request->progress(m->request->arg, range.after,
                                 m->result->position);
    }
    return status;
}

static struct text state_now(struct materializer *m)
{
    if (!m->present)
        return TEXT_NONE;
    return arena_copy(&m->result->arena, buffer_text(&m->state));
}

static enum status fold(struct materializer *m, struct diag *diag)
{
    struct topic *topic = topics_find(&m->app->topics, m->declaration->source);
    struct materialized *result = m->result;
    enum status status = high_water_mark_look(m->app->db, m->app->catalog,
                                              m->declaration->source,
                                              &result->position, diag);

    if (status == STATUS_OK)
        status = fold_range(m, topic, 0, result->stored_position, diag);
    if (status != STATUS_OK)
        return status;
    result->expected = state_now(m);
    status = fold_range(m, topic, result->stored_position, result->position,
                        diag);
    result->state = state_now(m);
    if (m->incomplete > 0)
        result->incomparable = clause(
            m, "the messages up to position %lld are gone",
            (long long)m->incomplete);
    else if (result->incomparable == NULL && !materialized_fits(result) &&
             read_model_topic_projection(m->declaration->source) != NULL)
        result->incomparable = "they differ, but compaction may have deleted "
                               "older messages of its topic";
    return status;
}

enum status materialize(struct application *app,
                        const struct materialize_request *request,
                        struct materialized *result, struct diag *diag)
{
    struct materializer m = {
        .app = app,
        .request = request,
        .declaration = request->declaration,
        .handler = script_handler(app->script),
        .result = result,
        .partition = hash_partition(request->key, app->settings->partitions),
    };
    enum status status;

    *result = (struct materialized){.arena = ARENA_EMPTY};
    if (request->declaration->kind != DECLARATION_PROJECTION)
        return diag_set(diag, STATUS_USAGE,
                        "'%s' keeps no read models: there is none to compute",
                        request->declaration->name);
    status = read_stored(&m, diag);
    if (status == STATUS_OK)
        status = fold(&m, diag);
    buffer_free(&m.state);
    skips_free(&m.skips);
    event_page_free(&m.page);
    if (status != STATUS_OK)
        materialized_free(result);
    return status;
}

void materialized_free(struct materialized *result)
{
    arena_free(&result->arena);
    *result = (struct materialized){.arena = ARENA_EMPTY};
}

bool materialized_fits(const struct materialized *result)
{
    return result->incomparable != NULL ||
           state_equal(result->stored, result->expected);
}
