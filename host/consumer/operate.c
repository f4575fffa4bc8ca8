#include "consumer/operate.h"

#include "consumer/letter.h"
#include "consumer/letter_change.h"
#include "consumer/operation.h"
#include "consumer/undelivered.h"
#include "topic/compaction.h"
#include "topic/high_water_mark.h"
#include "topic/read_model_topic.h"

#include <inttypes.h>

void operate_result_free(struct operate_result *result)
{
    arena_free(&result->arena);
}

/* --- what the table says -------------------------------------------------- */

/* Fills the result anew and looks up what the verb does here; *go says whether
 * there is anything to do. */
static enum status decide(struct operation *op, enum operator_verb verb,
                          struct operate_result *result, bool *go,
                          struct diag *diag)
{
    const struct consumer_row *row = &op->row;
    const struct transition *t = row->exists ? transition_find(verb, row->state,
                                                               row->halt_reason)
                                             : transition_of_new(verb);
    struct arena arena = result->arena;

    arena_reset(&arena);
    *result = (struct operate_result){
        .type = arena_string(&arena, text_of(op->type)),
        .name = arena_string(&arena, text_of(op->name)),
        .before = row->state,
        .after = row->state,
        .reason_before = row->halt_reason,
        .reason_after = row->halt_reason,
        .unchanged = t->text,
    };
    result->arena = arena;
    *go = t->kind == TRANSITION_TO || t->kind == TRANSITION_GONE;
    if (t->kind == TRANSITION_REFUSED)
        return diag_set(diag, STATUS_REFUSED, "%s '%s' %s", op->type, op->name,
                        t->text);
    if (!*go)
        return STATUS_OK;
    result->changed = true;
    result->after = t->state;
    result->reason_after = HALT_NONE;
    return STATUS_OK;
}

static enum status set_state(struct operation *op,
                             const struct operate_result *result,
                             struct diag *diag)
{
    return registry_set_state(op->env->db, op->env->catalog, &op->row,
                              result->after, result->reason_after,
                              clock_now(op->env->clock), diag);
}

/* --- pause ---------------------------------------------------------------- */

static enum status pause_it(struct operation *op, void *arg, struct diag *diag)
{
    struct operate_result *result = arg;
    bool go;
    enum status status = decide(op, OPERATOR_PAUSE, result, &go, diag);

    return status == STATUS_OK && go ? set_state(op, result, diag) : status;
}

/* A result is owed only when the verb went well. */
static enum status finish(enum status status, struct operate_result *result)
{
    if (status != STATUS_OK)
        operate_result_free(result);
    return status;
}

enum status operate_pause(const struct operate_env *env, const char *consumer,
                          struct operate_result *result, struct diag *diag)
{
    *result = (struct operate_result){.arena = ARENA_EMPTY};
    return finish(operation_run(env, consumer, false, pause_it, result, diag),
                  result);
}

/* --- resume --------------------------------------------------------------- */

/* How far the topics of a consumer were gone through. */
struct place {
    size_t source;
    int64_t after; /* position */
};

struct resume {
    const struct operate_resume *how;
    struct operate_result *result;
    struct place from, at;          /* before and behind this transaction, */
    bool more;                      /* which did not take all */
    int64_t messages, rows;         /* that it has settled, */
    int64_t all_messages, all_rows; /* and those before it */
};

static enum status settle(struct operation *op, struct resume *resume,
                          const struct letters *letters, struct diag *diag)
{
    int64_t rows = 0;
    enum status status = resume->how->past
                             ? letters_skip(op->env, letters,
                                            resume->how->every_key, &op->arena,
                                            &rows, diag)
                             : letters_retry(op->env, letters, &op->arena,
                                             diag);

    resume->messages += letters->total;
    resume->rows += rows;
    return status;
}

/* As many of the topic at hand as fit into one transaction. */
static enum status settle_page(struct operation *op, struct resume *resume,
                               struct diag *diag)
{
    const struct operate_env *env = op->env;
    const struct letter_filter filter = {
        .status = undelivered_status_word(UNDELIVERED_HALTED),
    };
    struct letter_span span = {
        .consumer_id = op->row.id,
        .source = op->sources[resume->at.source].name,
        .after = resume->at.after,
        .through = INT64_MAX,
    };
    struct letters letters;
    enum status status = letter_span_cut(env->db, env->catalog, &span,
                                         filter.status, OPERATION_ROWS, diag);

    if (status == STATUS_OK)
        status = letter_span_read(env->db, env->catalog, &filter, &span,
                                  LETTER_BARE, &op->arena, &letters, diag);
    if (status == STATUS_OK)
        status = settle(op, resume, &letters, diag);
    resume->more = span.through != INT64_MAX;
    if (resume->more)
        resume->at.after = span.through;
    else
        resume->at = (struct place){resume->at.source + 1, 0};
    return status;
}

static enum status settle_rest(struct operation *op, struct resume *resume,
                               struct diag *diag)
{
    enum status status = STATUS_OK;

    while (status == STATUS_OK && !resume->more &&
           resume->at.source < op->nsources)
        status = settle_page(op, resume, diag);
    return status;
}

/* The messages that halted the consumer, or as many of them as fit into one
 * transaction: it stays halted until the last of them is settled. The last of
 * several looks from the start once more, for somebody may have let it run in
 * between. */
static enum status settle_halting(struct operation *op, struct resume *resume,
                                  struct diag *diag)
{
    enum status status = settle_rest(op, resume, diag);

    if (status != STATUS_OK || resume->more || resume->all_messages == 0)
        return status;
    resume->at = (struct place){0, 0};
    return settle_rest(op, resume, diag);
}

/* Every read that misses history goes on behind the gap, and its rows remember
 * that. */
static enum status accept_gaps(struct operation *op,
                               struct operate_result *result, struct diag *diag)
{
    const struct operate_env *env = op->env;
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < op->nsources; i++) {
        const struct operation_source *source = &op->sources[i];
        struct high_water_mark mark;

        status = high_water_mark_read(env->db, env->catalog, source->name,
                                      &mark, diag);
        if (status != STATUS_OK || source->lowest >= mark.start)
            continue;
        const struct db_value params[] = {db_string(op->row.id),
                                          db_string(source->name),
                                          db_integer(mark.start)};

        status = db_execute(
            env->db, catalog_sql(env->catalog, SQL_CHECKPOINT_ACCEPT_GAP),
            params, 3, NULL, diag);
        if (mark.start > result->incomplete_through)
            result->incomplete_through = mark.start;
    }
    return status;
}

/* What the scripts declare now, NULL when they do not declare it. */
static const struct fingerprint *declared_now(const struct operation *op)
{
    const struct operate_env *env = op->env;

    for (size_t i = 0; env->declared != NULL && env->declared[i] != NULL; i++)
        if (strcmp(op->type, env->types[i]) == 0 &&
            strcmp(env->declared[i], op->name) == 0)
            return env->fingerprints[i];
    return NULL;
}

/* What the read models were derived by is what is declared now, as if nothing
 * had changed. */
static enum status accept_declaration(struct operation *op,
                                      struct operate_result *result,
                                      struct diag *diag)
{
    const struct fingerprint *fingerprint = declared_now(op);

    if (fingerprint == NULL)
        return diag_set(
            diag, STATUS_REFUSED,
            "%s '%s' %s, and --accept takes over what they declare", op->type,
            op->name,
            op->env->declared == NULL
                ? "cannot be compared: the scripts do not load (`moontide "
                  "check` says why)"
                : "is not declared by the scripts");
    result->declaration_accepted = true;
    return registry_fingerprint_accept(op->env->db, op->env->catalog, &op->row,
                                       fingerprint, diag);
}

static enum operator_verb resume_verb(const struct operate_resume *how)
{
    if (how->past)
        return OPERATOR_RESUME_PAST;
    return how->accept ? OPERATOR_RESUME_ACCEPT : OPERATOR_RESUME;
}

static enum status resume_it(struct operation *op, void *arg, struct diag *diag)
{
    struct resume *resume = arg;
    struct operate_result *result = resume->result;
    bool go;
    enum status status = decide(op, resume_verb(resume->how), result, &go,
                                diag);

    resume->at = resume->from;
    resume->more = false;
    resume->messages = resume->rows = 0;
    if (status != STATUS_OK || !go)
        return status;
    switch (result->reason_before) {
    case HALT_APPLY_ERROR:
        status = settle_halting(op, resume, diag);
        break;
    case HALT_MISSING_HISTORY:
        status = accept_gaps(op, result, diag);
        break;
    case HALT_DECLARATION_CHANGED:
        status = accept_declaration(op, result, diag);
        break;
    case HALT_NONE:
        break;
    }
    if (status != STATUS_OK || resume->more)
        return status;
    return set_state(op, result, diag);
}

enum status operate_resume(const struct operate_env *env, const char *consumer,
                           const struct operate_resume *how,
                           struct operate_result *result, struct diag *diag)
{
    struct resume resume = {.how = how, .result = result};
    enum status status;

    *result = (struct operate_result){.arena = ARENA_EMPTY};
    do {
        status = operation_run(env, consumer, false, resume_it, &resume, diag);
        if (status != STATUS_OK)
            break;
        resume.from = resume.at;
        resume.all_messages += resume.messages;
        resume.all_rows += resume.rows;
    } while (resume.more);
    if (status != STATUS_OK)
        (void)operation_tell_done(resume.all_messages,
                                  how->past ? "messages were skipped"
                                            : "messages were retried",
                                  diag);
    result->changed |= resume.all_messages > 0;
    result->undelivered = resume.all_rows;
    *(how->past ? &result->skipped : &result->retried) = resume.all_messages;
    return finish(status, result);
}

/* --- unsubscribe ---------------------------------------------------------- */

struct unsubscribe {
    const struct operate_unsubscribe *how;
    struct operate_result *result;
};

static enum status check_source(struct operation *op, const char *source,
                                struct diag *diag)
{
    const char **names = arena_alloc(&op->arena,
                                     (op->nsources + 1) * sizeof(*names));
    const char *near;

    for (size_t i = 0; i < op->nsources; i++) {
        if (strcmp(op->sources[i].name, source) == 0)
            return STATUS_OK;
        names[i] = op->sources[i].name;
    }
    names[op->nsources] = NULL;
    near = text_nearest(source, names);
    if (near == NULL && op->nsources > 0)
        near = names[0];
    return diag_set(diag, STATUS_USAGE,
                    "%s '%s' has no checkpoints on topic '%.200s'%s%s%s",
                    op->type, op->name, source,
                    near != NULL ? "; it reads '" : "",
                    near != NULL ? near : "", near != NULL ? "'" : "");
}

static enum status remove_rows(struct operation *op, enum sql_statement which,
                               const char *source, int64_t *count,
                               struct diag *diag)
{
    const struct db_value params[] = {db_string(op->row.id), db_string(source)};

    return db_execute(op->env->db, catalog_sql(op->env->catalog, which), params,
                      2, count, diag);
}

/* Its leases and its row; the leases last of what others lock, too. */
static enum status remove_consumer(struct operation *op, struct diag *diag)
{
    const struct db_value name[] = {db_string(op->type), db_string(op->name)};
    const struct db_value id = db_string(op->row.id);
    enum status status = db_execute(
        op->env->db, catalog_sql(op->env->catalog, SQL_UNSUBSCRIBE_LEASES),
        name, 2, NULL, diag);

    if (status != STATUS_OK)
        return status;
    return db_execute(op->env->db,
                      catalog_sql(op->env->catalog, SQL_UNSUBSCRIBE_CONSUMER),
                      &id, 1, NULL, diag);
}

/* In the order that the foreign keys ask for. */
static enum status remove_all(struct operation *op, const char *source,
                              struct operate_result *result, struct diag *diag)
{
    enum status status = remove_rows(op, SQL_UNSUBSCRIBE_SKIPPED, source,
                                     &result->skipped, diag);

    if (status == STATUS_OK)
        status = remove_rows(op, SQL_UNSUBSCRIBE_UNDELIVERED, source,
                             &result->undelivered, diag);
    if (status == STATUS_OK)
        status = remove_rows(op, SQL_UNSUBSCRIBE_CHECKPOINTS, source,
                             &result->checkpoints, diag);
    if (status != STATUS_OK || !result->gone)
        return status;
    return remove_consumer(op, diag);
}

/* A topic of read models that it was the last to read is on still. */
static enum status find_unread(struct operation *op, const char *source,
                               struct operate_result *result, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < op->nsources; i++) {
        const char *name = op->sources[i].name;
        struct compaction_holder reader;

        if (read_model_topic_projection(name) == NULL ||
            (source != NULL && strcmp(source, name) != 0))
            continue;
        status = compaction_slowest(op->env->db, op->env->catalog,
                                    text_of(name), &reader, diag);
        if (status == STATUS_OK && !reader.found)
            result->unread = arena_string(&result->arena, text_of(name));
        compaction_holder_free(&reader);
    }
    return status;
}

/* Whether the next start of a host would subscribe it again: to a topic that
 * it has read before, and that is declared no more, it would not. */
static bool is_read(const struct operation *op, const char *source)
{
    const struct operate_env *env = op->env;

    if (!operation_is_declared(op) || source == NULL || env->declared == NULL)
        return operation_is_declared(op);
    for (size_t i = 0; env->declared[i] != NULL; i++)
        if (strcmp(env->declared[i], op->name) == 0)
            return env->sources[i] == NULL ||
                   strcmp(env->sources[i], source) == 0;
    return true;
}

static enum status unsubscribe_it(struct operation *op, void *arg,
                                  struct diag *diag)
{
    struct unsubscribe *unsubscribe = arg;
    const struct operate_unsubscribe *how = unsubscribe->how;
    struct operate_result *result = unsubscribe->result;
    enum operator_verb verb = how->force || !is_read(op, how->source)
                                  ? OPERATOR_UNSUBSCRIBE_FORCE
                                  : OPERATOR_UNSUBSCRIBE;
    bool go;
    enum status status = decide(op, verb, result, &go, diag);

    if (status == STATUS_OK && go && how->source != NULL)
        status = check_source(op, how->source, diag);
    if (status != STATUS_OK || !go)
        return status;
    result->gone = how->source == NULL || op->nsources <= 1;
    if (!result->gone) { /* it goes on with its other sources as it is */
        result->after = result->before;
        result->reason_after = result->reason_before;
    }
    status = remove_all(op, how->source, result, diag);
    if (status == STATUS_OK)
        status = find_unread(op, how->source, result, diag);
    return status;
}

enum status operate_unsubscribe(const struct operate_env *env,
                                const char *consumer,
                                const struct operate_unsubscribe *how,
                                struct operate_result *result,
                                struct diag *diag)
{
    struct unsubscribe unsubscribe = {how, result};

    *result = (struct operate_result){.arena = ARENA_EMPTY};
    return finish(
        operation_run(env, consumer, true, unsubscribe_it, &unsubscribe, diag),
        result);
}
