#include "run/status_table.h"

#include "consumer/registry.h"
#include "run/declared_table.h"
#include "run/status_consumer.h"
#include "script/sql_text.h"

#include <ctype.h>

struct look {
    struct application *app;
    struct status_report *report;
    struct status_consumer *consumer;
    const struct declaration *declaration;
};

static void tell(const struct look *look, struct buffer *sentence)
{
    look->consumer->table_problem = arena_string(&look->report->arena,
                                                 buffer_text(sentence));
}

static void tell_missing(const struct look *look, const char *table,
                         const char *remedy)
{
    struct buffer sentence = BUFFER_EMPTY;

    buffer_printf(&sentence,
                  "%s '%s' stands still, or will with the next message: its "
                  "table '%s' is missing; %s",
                  look->consumer->type, look->consumer->name, table, remedy);
    tell(look, &sentence);
    buffer_free(&sentence);
}

/* --- keyed projections ---------------------------------------------------- */

static enum status look_at_own(const struct look *look, struct diag *diag)
{
    const struct status_consumer *consumer = look->consumer;
    struct buffer text = BUFFER_EMPTY;
    struct diag fault;
    bool missing = false;
    enum status status = declared_table_fault(look->app, look->declaration,
                                              &missing, &fault);

    if (status == STATUS_OK || consumer->change.part[FINGERPRINT_SHAPE])
        return STATUS_OK; /* another shape is declared: told elsewhere */
    if (status != STATUS_CONFIG) {
        *diag = fault;
        return status;
    }
    if (missing) {
        buffer_printf(&text,
                      "`moontide rebuild %s` makes it anew and a running host "
                      "fills it from the topic, or bring it back",
                      consumer->name);
        tell_missing(look, look->declaration->table, buffer_text(&text).data);
    } else {
        buffer_printf(&text,
                      "%s '%s' stands still, or will with the next message: %s",
                      consumer->type, consumer->name, fault.message);
        tell(look, &text);
    }
    buffer_free(&text);
    return STATUS_OK;
}

/* --- SQL projections ------------------------------------------------------ */

static enum status find(const struct look *look, struct text name, bool *exists,
                        struct diag *diag)
{
    struct arena arena = ARENA_EMPTY;
    struct db_shape shape;
    enum status status = db_describe_table(look->app->db,
                                           arena_string(&arena, name), &arena,
                                           &shape, exists, diag);

    arena_free(&arena);
    return status;
}

/* A database may keep a name that is not quoted in lower case. */
static enum status find_either(const struct look *look, struct text name,
                               bool *exists, struct diag *diag)
{
    struct buffer lower = BUFFER_EMPTY;
    enum status status = find(look, name, exists, diag);

    for (size_t i = 0; i < name.len; i++)
        buffer_append_char(&lower, (char)tolower((unsigned char)name.data[i]));
    if (status == STATUS_OK && !*exists)
        status = find(look, buffer_text(&lower), exists, diag);
    buffer_free(&lower);
    return status;
}

static void tell_sql_missing(const struct look *look, struct text table)
{
    const struct declaration *d = look->declaration;
    struct buffer remedy = BUFFER_EMPTY;
    struct arena arena = ARENA_EMPTY;

    buffer_append_string(&remedy, "bring it back");
    if (d->resettable)
        buffer_printf(&remedy,
                      ", or `moontide rebuild %s` makes it anew by %s and "
                      "derives it from the topic",
                      d->name, d->tables_file);
    else
        buffer_printf(&remedy,
                      ": made anew by %s it lacks what was applied before",
                      d->tables_file);
    tell_missing(look, arena_string(&arena, table), buffer_text(&remedy).data);
    arena_free(&arena);
    buffer_free(&remedy);
}

/* What its file creates. */
static enum status look_at_file(const struct look *look, struct diag *diag)
{
    struct text rest = look->declaration->tables_sql;
    struct text table;
    enum status status = STATUS_OK;

    if (rest.data == NULL)
        return STATUS_OK;
    status = db_begin_read(look->app->db, diag);
    while (status == STATUS_OK && look->consumer->table_problem == NULL &&
           sql_text_next_table(&rest, &table)) {
        bool exists;

        status = find_either(look, table, &exists, diag);
        if (status == STATUS_OK && !exists)
            tell_sql_missing(look, table);
    }
    db_rollback(look->app->db);
    return status;
}

/* --- all of them ---------------------------------------------------------- */

/* What an earlier look has found, where nothing has to be applied since. */
static const char *found_before(const struct status_request *request,
                                const struct status_consumer *consumer)
{
    const struct status_report *before = request->before;

    for (size_t i = 0; i < before->nconsumers; i++)
        if (strcmp(before->consumers[i].name, consumer->name) == 0 &&
            strcmp(before->consumers[i].type, consumer->type) == 0)
            return before->consumers[i].table_problem;
    return NULL;
}

/* A new one has no table yet, and a rebuild makes it anew. */
static bool has_table(const struct status_consumer *consumer)
{
    return consumer->declared && consumer->registered &&
           strcmp(consumer->state, consumer_state_word(CONSUMER_REBUILDING)) !=
               0;
}

enum status status_tables_read(struct application *app,
                               const struct status_request *request,
                               struct status_report *report, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < report->nconsumers; i++) {
        struct status_consumer *consumer = &report->consumers[i];
        const struct look look = {
            .app = app,
            .report = report,
            .consumer = consumer,
            .declaration = status_consumer_declaration(request, consumer),
        };

        if (!has_table(consumer) || look.declaration == NULL)
            continue;
        if (request->before != NULL && consumer->lag == 0) {
            const char *before = found_before(request, consumer);

            if (before != NULL)
                consumer->table_problem = arena_string(&report->arena,
                                                       text_of(before));
        } else if (look.declaration->kind == DECLARATION_PROJECTION) {
            status = look_at_own(&look, diag);
        } else {
            status = look_at_file(&look, diag);
        }
    }
    return status;
}
