#include "run/needed_rights.h"

#include "base/memory.h"
#include "run/declared_table.h"
#include "schema/rights.h"

#define S RIGHT_SELECT
#define I RIGHT_INSERT
#define U RIGHT_UPDATE
#define D RIGHT_DELETE

/* What every host does beside reading, and what is added by projections, by
 * sagas, and by effects: those of listeners and sagas. What only some settings
 * or an operator's verb do is not asked for. */
static const struct {
    unsigned always, projections, sagas, effects;
} NEEDED[TABLE_COUNT] = {
    [TABLE_EVENT_STORE] = {.effects = I},
    [TABLE_EVENT_STORE_POSITION] = {.effects = I | U},
    [TABLE_CAPTURE] = {.effects = I},
    [TABLE_CAPTURE_POSITION] = {.effects = I | U},
    [TABLE_MARKS] = {.always = U},
    [TABLE_CONSUMERS] = {.always = I | U},
    [TABLE_CHECKPOINTS] = {.always = I | U},
    [TABLE_UNDELIVERED] = {.always = I | U | D},
    [TABLE_SKIPPED] = {.always = I | U | D},
    [TABLE_INSTANCES] = {.always = I | U | D},
    [TABLE_OWNERSHIP] = {.always = I | U},
    [TABLE_MEMBERS] = {.always = I | U | D},
    [TABLE_EPOCHS] = {.projections = I | U | D},
    [TABLE_SAGA_INSTANCES] = {.sagas = I | U | D},
    [TABLE_SAGA_DEADLINES] = {.sagas = I | U | D},
    [TABLE_SAGA_STEPS] = {.sagas = I | U | D},
    [TABLE_COMMAND_RESULTS] = {.always = U | D, .effects = I},
    [TABLE_OUTBOX] = {.effects = I | U},
    [TABLE_SCRIPT_VERSIONS] = {.always = I | U | D},
};

static unsigned rights_of(enum table_id id, const struct declaration *list,
                          size_t count)
{
    unsigned rights = S | NEEDED[id].always;

    for (size_t i = 0; i < count; i++) {
        enum declaration_kind kind = list[i].kind;

        if (kind == DECLARATION_PROJECTION)
            rights |= NEEDED[id].projections;
        if (kind == DECLARATION_SAGA)
            rights |= NEEDED[id].sagas;
        if (kind == DECLARATION_SAGA || kind == DECLARATION_LISTENER)
            rights |= NEEDED[id].effects;
    }
    return rights;
}

enum status needed_rights_host(struct application *app,
                               const struct script *script, struct diag *diag)
{
    const struct names *names = &app->settings->names;
    size_t tables = names_tables(names);
    size_t count = 0, ndeclarations = 0;
    const struct declaration *list = script_declarations(script,
                                                         &ndeclarations);
    struct rights_wanted *wanted = mem_alloc(tables * sizeof(*wanted));
    enum status status;

    for (size_t i = 0; i < tables; i++) {
        enum table_id like;
        const char *name = names_table(names, i, &like);

        if (name != NULL)
            wanted[count++] = (struct rights_wanted){
                name, rights_of(like, list, ndeclarations)};
    }
    status = rights_check(app->db, wanted, count, diag);
    mem_free(wanted);
    return status;
}

enum status needed_rights_read_models(struct application *app,
                                      const struct script *script,
                                      struct diag *diag)
{
    size_t count = 0, ndeclarations = 0;
    const struct declaration *list = script_declarations(script,
                                                         &ndeclarations);
    struct rights_wanted *wanted = mem_alloc((ndeclarations + 1) *
                                             sizeof(*wanted));
    enum status status = STATUS_OK;

    for (size_t i = 0; i < ndeclarations && status == STATUS_OK; i++) {
        bool unfit = true; /* a rebuild makes it, and has all rights then */

        if (list[i].kind == DECLARATION_PROJECTION)
            status = declared_table_unfit(app, &list[i], &unfit, diag);
        if (status == STATUS_OK && !unfit)
            wanted[count++] = (struct rights_wanted){list[i].table,
                                                     S | I | U | D};
    }
    if (status == STATUS_OK && count > 0)
        status = rights_check(app->db, wanted, count, diag);
    mem_free(wanted);
    return status;
}
