#include "consumer/charge_deadline.h"

#include "consumer/deadline.h"
#include "consumer/outcome.h"

static enum status record(const struct consumer_env *env,
                          const struct attempt *a,
                          const struct failure *failure, bool again,
                          int64_t *rows, struct diag *diag)
{
    const struct message message = {.id = a->message_id};
    const struct text untold = TEXT_LITERAL(FAILURE_UNTOLD);
    struct db_value next_at = db_null();
    char id[UUID_TEXT_LEN + 1];
    int64_t now;
    enum status status = deadline_clock(env->db, env->clock, &now, diag);

    if (status != STATUS_OK)
        return status;
    if (again)
        next_at = db_timestamp(
            outcome_retry_at(&a->retry, &message, a->attempt, now));
    uuid_format(&a->message_id, id);
    return db_execute(env->db, catalog_sql(env->catalog, SQL_DEADLINE_CHARGE),
                      (struct db_value[]){
                          db_string(id),
                          db_integer(a->attempt),
                          db_string(deadline_status_word(
                              again ? DEADLINE_FAILED : DEADLINE_DEAD_LETTER)),
                          next_at,
                          db_string(failure->reason),
                          db_text_value(untold),
                      },
                      6, rows, diag);
}

enum status charge_deadline(const struct consumer_env *env,
                            const struct attempt *a,
                            const struct failure *failure, bool *charged,
                            struct diag *diag)
{
    bool again = retry_policy_allows(&a->retry, a->attempt);
    char id[UUID_TEXT_LEN + 1], cause[FAILURE_CAUSE_SIZE];
    const struct log_about about = {
        .consumer = a->name, .message_id = id, .alike = cause};
    int64_t rows = 0;
    enum status status = db_begin(env->db, diag);

    if (status != STATUS_OK)
        return status;
    status = record(env, a, failure, again, &rows, diag);
    if (status == STATUS_OK)
        status = db_commit(env->db, NULL, diag);
    if (status != STATUS_OK) {
        db_rollback(env->db);
        return status;
    }
    *charged = rows > 0;
    uuid_format(&a->message_id, id);
    failure_cause(failure, cause);
    if (*charged)
        log_write(env->log, again ? LOG_WARN : LOG_ERROR, &about,
                  "a deadline of saga '%s' could not be fired: %s; %s%d of %d",
                  a->key, failure->reason,
                  again ? "attempt " : "it is a dead letter after attempt ",
                  a->attempt, a->retry.attempts);
    return STATUS_OK;
}
