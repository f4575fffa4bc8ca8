#include "model/saga_declared.h"

#include "base/arena.h"

static bool is_undoing(struct text state)
{
    return text_equal(state,
                      text_of(saga_step_state_word(SAGA_STEP_COMPENSATING))) ||
           text_equal(state, text_of(saga_step_state_word(SAGA_STEP_STUCK)));
}

void saga_declared_describe(struct text saga_id, struct text step,
                            struct text state, struct buffer *out)
{
    buffer_printf(out,
                  "step '" TEXT_FORMAT "' of saga '" TEXT_FORMAT
                  "' is " TEXT_FORMAT
                  ", and %s is not declared any more; declare it again until "
                  "the sagas under way have ended",
                  TEXT_ARGS(step), TEXT_ARGS(saga_id), TEXT_ARGS(state),
                  is_undoing(state) ? "its compensation" : "it");
}

bool saga_declared_lacks(const struct saga_steps *steps,
                         const struct saga_step_row *row)
{
    if (row->deadline_at == 0)
        return false;
    if (row->step == SAGA_STEP_GONE)
        return true;
    return (row->state == SAGA_STEP_COMPENSATING ||
            row->state == SAGA_STEP_STUCK) &&
           !steps->rules[row->step].compensated;
}

static enum status take_row(void *arg, struct db_rows *row, struct diag *diag)
{
    (void)diag;
    saga_declared_describe(db_get_text(row, 0), db_get_text(row, 1),
                           db_get_text(row, 2), arg);
    return STATUS_OK;
}

enum status saga_declared_look(struct db *db, const struct catalog *catalog,
                               const struct declaration *declaration,
                               struct buffer *missing, struct diag *diag)
{
    struct arena arena = ARENA_EMPTY;
    struct text *names, *undone;
    size_t count = 0;
    enum status status;

    if (declaration->kind != DECLARATION_SAGA)
        return STATUS_OK;
    names = arena_alloc(&arena, declaration->nsteps * sizeof(*names) + 1);
    undone = arena_alloc(&arena, declaration->nsteps * sizeof(*undone) + 1);
    for (size_t i = 0; i < declaration->nsteps; i++) {
        names[i] = declaration->steps[i].name;
        if (declaration->steps[i].compensated)
            undone[count++] = names[i];
    }
    const struct db_value params[] = {db_string(declaration->name),
                                      db_texts(names, declaration->nsteps),
                                      db_texts(undone, count)};

    status = db_rows_each(db, catalog_sql(catalog, SQL_SAGA_STEPS_UNDECLARED),
                          params, 3, take_row, missing, diag);
    arena_free(&arena);
    return status;
}

enum status saga_declared_check(struct db *db, const struct catalog *catalog,
                                const struct declaration *declaration,
                                struct diag *diag)
{
    struct buffer missing = BUFFER_EMPTY;
    enum status status = saga_declared_look(db, catalog, declaration, &missing,
                                            diag);

    if (status == STATUS_OK && missing.len > 0)
        status = diag_set(diag, STATUS_REFUSED, "%s:%d: %s", declaration->file,
                          declaration->line, missing.data);
    buffer_free(&missing);
    return status;
}
