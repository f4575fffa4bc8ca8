#include "model/saga_step_operate.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/json_member.h"
#include "consumer/deadline.h"
#include "model/saga_flow.h"
#include "model/saga_step_store.h"

enum status saga_step_operate_read(const struct operate_env *env,
                                   const struct saga_step_subject *subject,
                                   struct arena *arena,
                                   struct saga_steps *steps, struct diag *diag)
{
    enum status status = db_begin_read(env->db, diag);

    *steps = (struct saga_steps){.arena = arena};
    if (status != STATUS_OK)
        return status;
    status = saga_step_store_read(env->db, env->catalog, subject->saga_type,
                                  subject->saga_id, steps, diag);
    db_rollback(env->db);
    return status;
}

/* --- orders --------------------------------------------------------------- */

static enum status find_awaited(const struct saga_steps *steps,
                                const struct saga_step_subject *subject,
                                struct text step, struct saga_step_row *awaited,
                                struct diag *diag)
{
    const struct saga_step_row *row = saga_steps_awaited(steps);

    if (steps->nrows == 0)
        return diag_set(diag, STATUS_FAILED,
                        "there is no saga '%.*s' of type '%.*s' with steps; "
                        "moontide sagas lists them",
                        TEXT_ARGS(subject->saga_id),
                        TEXT_ARGS(subject->saga_type));
    if (row == NULL)
        return diag_set(diag, STATUS_FAILED,
                        "saga '%.*s' of type '%.*s' awaits no answer: nothing "
                        "changed",
                        TEXT_ARGS(subject->saga_id),
                        TEXT_ARGS(subject->saga_type));
    if (step.data != NULL && !text_equal(row->name, step))
        return diag_set(diag, STATUS_FAILED,
                        "saga '%.*s' of type '%.*s' awaits the answer of step "
                        "'%.*s', not of '%.*s': nothing changed",
                        TEXT_ARGS(subject->saga_id),
                        TEXT_ARGS(subject->saga_type), TEXT_ARGS(row->name),
                        TEXT_ARGS(step));
    *awaited = *row;
    return STATUS_OK;
}

static void write_order(struct buffer *out, enum saga_step_order order,
                        struct text step)
{
    buffer_printf(out, "{\"operator\":\"%s\",\"step\":",
                  order == SAGA_STEP_RETRY ? "retry" : "confirm");
    json_write_string(out, step);
    buffer_append_char(out, '}');
}

/* What the deleted row told of the chain that the saga is part of, as far as
 * the messages that it has staged still say it. */
static enum status write_chain(const struct operate_env *env,
                               const struct saga_step_subject *subject,
                               struct buffer *out, struct diag *diag)
{
    const struct db_value params[] = {db_text_value(subject->saga_type),
                                      db_text_value(subject->saga_id)};
    struct db_rows *rows;
    bool found = false, first = true;
    enum status status = db_query(
        env->db, catalog_sql(env->catalog, SQL_SAGA_STEPS_CORRELATION), params,
        2, &rows, diag);

    if (status != STATUS_OK)
        return status;
    status = db_next(rows, &found, diag);
    buffer_append_char(out, '{');
    if (status == STATUS_OK && found)
        json_member_text(out, &first, "correlation_id", db_get_text(rows, 0));
    db_rows_close(rows);
    json_member_text(out, &first, "saga_id", subject->saga_id);
    json_member_text(out, &first, "saga_type", subject->saga_type);
    buffer_append_char(out, '}');
    return status;
}

static enum status make_deadline(const struct operate_env *env,
                                 const struct saga_step_subject *subject,
                                 struct db_value params[8], int64_t *made,
                                 struct diag *diag)
{
    struct buffer metadata = BUFFER_EMPTY;
    enum status status = write_chain(env, subject, &metadata, diag);

    params[7] = db_text_value(buffer_text(&metadata));
    if (status == STATUS_OK)
        status = db_execute(env->db,
                            catalog_sql(env->catalog, SQL_SAGA_STEP_ORDER_ANEW),
                            params, 8, made, diag);
    buffer_free(&metadata);
    return status;
}

/* Of a row that somebody has deleted by hand another is made: the order must
 * reach the saga. */
static enum status write_deadline(const struct operate_env *env,
                                  const struct saga_step_subject *subject,
                                  enum saga_step_order order, struct text step,
                                  struct diag *diag)
{
    struct uuid_source ids = {.last_ms = 0};
    struct buffer json = BUFFER_EMPTY;
    struct db_value params[8];
    int64_t now, changed = 0;
    enum status status = deadline_clock(env->db, env->clock, &now, diag);

    if (status != STATUS_OK)
        return status;
    write_order(&json, order, step);
    params[0] = db_text_value(subject->saga_type);
    params[1] = db_text_value(subject->saga_id);
    params[2] = db_string(SAGA_FLOW_DEADLINE);
    params[3] = db_uuid(uuid_v7(&ids, now));
    params[4] = db_text_value(buffer_text(&json));
    params[5] = db_timestamp(now);
    params[6] = db_integer(hash_fnv1a32(subject->saga_id));
    status = db_execute(env->db, catalog_sql(env->catalog, SQL_SAGA_STEP_ORDER),
                        params, 6, &changed, diag);
    if (status == STATUS_OK && changed == 0)
        status = make_deadline(env, subject, params, &changed, diag);
    buffer_free(&json);
    if (status != STATUS_OK || changed > 0)
        return status;
    return diag_set(diag, STATUS_FAILED,
                    "saga '%.*s' of type '%.*s' is gone meanwhile: nothing "
                    "changed",
                    TEXT_ARGS(subject->saga_id), TEXT_ARGS(subject->saga_type));
}

enum status saga_step_operate(const struct operate_env *env,
                              const struct saga_step_subject *subject,
                              enum saga_step_order order, struct text step,
                              struct arena *arena,
                              struct saga_step_row *awaited, struct diag *diag)
{
    struct saga_steps steps = {.arena = arena};
    enum status status = db_begin(env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = saga_step_store_read(env->db, env->catalog, subject->saga_type,
                                  subject->saga_id, &steps, diag);
    if (status == STATUS_OK)
        status = find_awaited(&steps, subject, step, awaited, diag);
    if (status == STATUS_OK)
        status = write_deadline(env, subject, order, awaited->name, diag);
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    if (status != STATUS_OK)
        db_rollback(env->db);
    return status;
}

/* --- JSON ----------------------------------------------------------------- */

static void write_row(struct buffer *out, const struct saga_step_row *row)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_text(out, &first, "step", row->name);
    json_member_int64(out, &first, "round", row->round);
    json_member_text(out, &first, "state",
                     text_of(saga_step_state_word(row->state)));
    json_member_id(out, &first, "command_id", &row->command_id);
    json_member_id(out, &first, "compensation_id",
                   row->has_compensation_id ? &row->compensation_id : NULL);
    json_member_int64(out, &first, "sends", row->sends);
    json_member_int64(out, &first, "compensation_sends",
                      row->compensation_sends);
    json_member_text(out, &first, "failure_reason", row->reason);
    json_member_time_or_null(out, &first, "deadline_at", row->deadline_at);
    json_member_time_or_null(out, &first, "sent_at", row->sent_at);
    json_member_time_or_null(out, &first, "answered_at", row->answered_at);
    json_member_time_or_null(out, &first, "compensation_sent_at",
                             row->compensation_sent_at);
    json_member_time_or_null(out, &first, "compensated_at",
                             row->compensated_at);
    buffer_append_char(out, '}');
}

void saga_step_operate_json(struct buffer *out, const struct saga_steps *steps)
{
    buffer_append_char(out, '[');
    for (size_t i = 0; i < steps->nrows; i++) {
        if (i > 0)
            buffer_append_string(out, ",\n");
        write_row(out, &steps->rows[i]);
    }
    buffer_append_char(out, ']');
}
