#include "schema/upgrade.h"

#include "schema/fill.h"
#include "schema/schema.h"

#define STEP_STATEMENTS_MAX 8

struct upgrade_step {
    int version;      /* that the step leads to */
    const char *what; /* for the report */
    size_t nstatements;
    enum sql_statement statements[STEP_STATEMENTS_MAX]; /* in this order */
};

/* Ordered by version; the last one is SCHEMA_VERSION. */
static const struct upgrade_step STEPS[] = {
    {.version = 1, .what = "the tables of the first version"},
};

_Static_assert(sizeof(STEPS) / sizeof(STEPS[0]) == SCHEMA_VERSION,
               "every schema version has its step");

static enum status run_one(void *arg, struct text filled, const char *table,
                           struct diag *diag)
{
    (void)table;
    return db_script(arg, filled, DB_HOST, diag);
}

enum status upgrade_run(struct db *db, const struct names *names, int64_t from,
                        struct buffer *report, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); i++) {
        const struct upgrade_step *step = &STEPS[i];

        if (step->version <= from)
            continue;
        for (size_t j = 0; j < step->nstatements; j++) {
            status = fill_each(catalog_raw(db_dialect(db), step->statements[j]),
                               names, run_one, db, diag);
            if (status != STATUS_OK)
                return diag_wrap(diag, "upgrade of the schema to version %d",
                                 step->version);
        }
        if (report != NULL)
            buffer_printf(report, "upgraded the schema to version %d: %s\n",
                          step->version, step->what);
    }
    return status;
}

enum status upgrade_record(struct db *db, const struct names *names,
                           struct diag *diag)
{
    int64_t now;
    enum status status;

    status = db_now(db, &now, diag);
    if (status != STATUS_OK)
        return status;
    return fill_execute(
        db, names, SQL_SCHEMA_VERSION_WRITE,
        (struct db_value[]){db_integer(SCHEMA_VERSION), db_timestamp(now)}, 2,
        diag);
}
