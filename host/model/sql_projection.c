#include "model/sql_projection.h"

#include "base/memory.h"
#include "model/handler_unit.h"
#include "model/sql_unit.h"

#include <strings.h>

struct sql_projection {
    const struct declaration *declaration;
    struct handler handler;
    struct sql_unit unit;
    struct effects *effects;
    const struct unit *units;
    bool replaying;
};

static enum status sql_projection_begin(void *self, struct db *db,
                                        const struct unit *units, size_t count,
                                        int64_t replay_epoch, struct diag *diag)
{
    struct sql_projection *p = self;

    (void)db;
    (void)count;
    (void)diag;
    p->units = units;
    p->replaying = replay_epoch > 0;
    handler_sql_batch_begin(p->unit.sql, true);
    return STATUS_OK;
}

/* A message that stands by itself has no key to show. */
static struct text own_key_of(const struct sql_projection *p,
                              const struct unit *unit)
{
    return p->declaration->own_key || unit->message->key.data != NULL
               ? unit->key
               : TEXT_NONE;
}

struct unit_call {
    struct sql_projection *p;
    const struct unit *unit;
};

static enum status call_handler(void *arg, struct failure *failure,
                                struct diag *diag)
{
    const struct unit_call *of = arg;
    const struct sql_projection *p = of->p;
    const struct unit *unit = of->unit;
    const struct handler_call call = {
        .declaration = p->declaration,
        .message = unit->message,
        .key = own_key_of(p, unit),
        .partition = unit->partition,
        .attempt = unit->attempt,
        .replaying = p->replaying,
        .sql = p->unit.sql,
        .effects = p->effects,
    };

    return p->handler.ops->apply(p->handler.code, &call, failure, diag);
}

static enum status sql_projection_apply(void *self, struct db *db, size_t unit,
                                        enum apply_verdict *verdict,
                                        struct failure *failure,
                                        struct diag *diag)
{
    struct sql_projection *p = self;
    struct unit_call call = {.p = p, .unit = &p->units[unit]};

    return sql_unit_run(&p->unit, db, call_handler, &call, verdict, failure,
                        diag);
}

static enum status sql_projection_finish(void *self, struct db *db,
                                         struct failure *failure,
                                         struct diag *diag)
{
    struct sql_projection *p = self;

    (void)db;
    (void)failure;
    return handler_sql_send(p->unit.sql, diag);
}

/* `reset` runs like a handler, of no message. */
static enum status sql_projection_reset(void *self, struct db *db,
                                        struct failure *failure,
                                        struct diag *diag)
{
    const struct message none = {.type = TEXT_LITERAL("reset")};
    struct sql_projection *p = self;
    const struct handler_call call = {
        .declaration = p->declaration,
        .message = &none,
        .attempt = 1,
        .replaying = true,
        .sql = p->unit.sql,
    };
    enum status status;

    (void)db;
    handler_sql_batch_begin(p->unit.sql, true);
    handler_sql_call_begin(p->unit.sql);
    status = p->handler.ops->reset(p->handler.code, &call, failure, diag);
    return status == STATUS_OK ? handler_sql_send(p->unit.sql, diag) : status;
}

static enum status sql_projection_keys(void *self,
                                       const struct message *message,
                                       int attempt, applier_key_fn emit,
                                       void *arg, struct failure *failure)
{
    struct sql_projection *p = self;

    return handler_unit_keys(&p->handler, p->declaration, message, attempt,
                             emit, arg, failure);
}

static enum status sql_projection_on_error(void *self, const struct unit *unit,
                                           int failures,
                                           const struct failure *failure,
                                           enum error_policy *policy,
                                           struct failure *refused)
{
    struct sql_projection *p = self;

    return handler_unit_on_error(&p->handler, p->declaration, unit, failures,
                                 failure, policy, refused);
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || (c & 0x80) != 0;
}

/* It owns what its DDL names. */
static bool sql_projection_owns(void *self, const char *table)
{
    const struct sql_projection *p = self;
    struct text ddl = p->declaration->tables_sql;
    size_t len = strlen(table);

    for (size_t i = 0; i + len <= ddl.len; i++)
        if (strncasecmp(ddl.data + i, table, len) == 0 &&
            (i == 0 || !is_word(ddl.data[i - 1])) &&
            (i + len == ddl.len || !is_word(ddl.data[i + len])))
            return true;
    return false;
}

static const char *sql_projection_where(void *self, int64_t tag)
{
    struct sql_projection *p = self;

    return handler_sql_where(p->unit.sql, tag);
}

static void sql_projection_end(void *self)
{
    struct sql_projection *p = self;

    p->units = NULL;
    p->handler.ops->batch_end(p->handler.code);
}

static const struct applier_ops sql_projection_ops = {
    .owns = sql_projection_owns,
    .keys = sql_projection_keys,
    .begin = sql_projection_begin,
    .apply = sql_projection_apply,
    .finish = sql_projection_finish,
    .reset = sql_projection_reset,
    .on_error = sql_projection_on_error,
    .where = sql_projection_where,
    .end = sql_projection_end,
};

struct sql_projection *sql_projection_new(const struct declaration *declaration,
                                          struct handler handler, struct db *db,
                                          struct effects *effects)
{
    struct sql_projection *p = mem_alloc(sizeof(*p));

    p->declaration = declaration;
    p->handler = handler;
    p->unit.sql = handler_sql_new(db);
    p->effects = effects;
    return p;
}

void sql_projection_free(struct sql_projection *p)
{
    if (p == NULL)
        return;
    handler_sql_free(p->unit.sql);
    mem_free(p);
}

struct applier sql_projection_applier(struct sql_projection *p)
{
    return (struct applier){.ops = &sql_projection_ops, .self = p};
}
