#include "run/undeclared.h"

#include "consumer/registry.h"

#include <inttypes.h>

static enum status take_count(void *arg, struct db_rows *row, struct diag *diag)
{
    (void)diag;
    *(int64_t *)arg = db_get_int64(row, 0);
    return STATUS_OK;
}

enum status undeclared_sagas(struct application *app, const char *type,
                             const char *name, int64_t *count,
                             struct diag *diag)
{
    const struct db_value params[] = {db_string(name), db_null(),
                                      db_boolean(true)};

    *count = 0;
    if (strcmp(type, CONSUMER_TYPE_SAGA) != 0)
        return STATUS_OK;
    return db_rows_each(app->db, catalog_sql(app->catalog, SQL_SAGAS_COUNT),
                        params, 3, take_count, count, diag);
}

void undeclared_remedy(const char *type, const char *name, int64_t sagas,
                       struct buffer *sentence)
{
    if (sagas > 0)
        buffer_printf(sentence,
                      ", and %" PRId64
                      " %s under way wait%s for ever (`moontide sagas list %s` "
                      "shows %s)",
                      sagas, sagas == 1 ? "saga" : "sagas",
                      sagas == 1 ? "s" : "", name, sagas == 1 ? "it" : "them");
    buffer_printf(sentence,
                  "; if it was renamed, give it its former name back, for "
                  "under another one it begins anew; if it is to go, `moontide "
                  "unsubscribe %s` forgets how far it has read",
                  name);
    if (strcmp(type, CONSUMER_TYPE_SAGA) == 0 && sagas > 0)
        buffer_printf(sentence,
                      ", and `moontide sagas delete %s ID --force` takes a "
                      "saga away",
                      name);
}

void undeclared_add(struct buffer *declared, const char *name)
{
    buffer_append_string(declared, name);
    buffer_append_char(declared, '\0');
}

static bool is_declared(struct text declared, const char *name)
{
    const char *at = declared.data;
    const char *end = at + declared.len;

    while (at < end && strcmp(at, name) != 0)
        at += strlen(at) + 1;
    return at < end;
}

/* One of them; lives in the arena of the list. */
struct undeclared {
    const char *type;
    const char *name;
    int64_t sagas;
};

struct undeclared_list {
    struct text declared;
    struct arena arena;
    struct undeclared *items;
    size_t count;
};

static enum status take_consumer(void *arg, struct db_rows *row,
                                 struct diag *diag)
{
    struct undeclared_list *list = arg;
    const char *name = arena_string(&list->arena, db_get_text(row, 2));

    (void)diag;
    if (is_declared(list->declared, name))
        return STATUS_OK;
    list->items = arena_grow(&list->arena, list->items, list->count,
                             sizeof(*list->items));
    list->items[list->count++] = (struct undeclared){
        .type = arena_string(&list->arena, db_get_text(row, 1)),
        .name = name,
    };
    return STATUS_OK;
}

static enum status find(struct application *app, struct undeclared_list *list,
                        struct diag *diag)
{
    enum status status = db_begin_read(app->db, diag);

    if (status == STATUS_OK)
        status = db_rows_each(app->db,
                              catalog_sql(app->catalog, SQL_STATUS_CONSUMERS),
                              NULL, 0, take_consumer, list, diag);
    for (size_t i = 0; status == STATUS_OK && i < list->count; i++)
        status = undeclared_sagas(app, list->items[i].type, list->items[i].name,
                                  &list->items[i].sagas, diag);
    db_rollback(app->db);
    return status;
}

enum status undeclared_tell(struct application *app, struct text declared,
                            struct diag *diag)
{
    struct undeclared_list list = {.declared = declared, .arena = ARENA_EMPTY};
    struct buffer remedy = BUFFER_EMPTY;
    enum status status = find(app, &list, diag);

    for (size_t i = 0; status == STATUS_OK && i < list.count; i++) {
        const struct undeclared *one = &list.items[i];

        buffer_clear(&remedy);
        undeclared_remedy(one->type, one->name, one->sagas, &remedy);
        log_write(&app->log, LOG_WARN,
                  &(struct log_about){.consumer = one->name},
                  "the database knows the %s, but no script of this host "
                  "declares it: it does not run here" TEXT_FORMAT,
                  one->type, TEXT_ARGS(buffer_text(&remedy)));
    }
    buffer_free(&remedy);
    arena_free(&list.arena);
    return status;
}

enum status undeclared_tell_scripts(struct application *app, struct diag *diag)
{
    struct buffer declared = BUFFER_EMPTY;
    size_t count = 0;
    const struct declaration *declarations = script_declarations(app->script,
                                                                 &count);
    enum status status;

    for (size_t i = 0; i < count; i++)
        undeclared_add(&declared, declarations[i].name);
    status = undeclared_tell(app, buffer_text(&declared), diag);
    buffer_free(&declared);
    return status;
}
