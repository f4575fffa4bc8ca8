#include "schema/schema.h"

#include "base/clock.h"
#include "schema/columns.h"
#include "schema/fill.h"
#include "schema/seed.h"
#include "schema/upgrade.h"

#include <inttypes.h>

/* What a database holds of the schema, as one transaction saw it. */
struct finding {
    struct columns columns;
    int64_t version; /* SCHEMA_VERSION when there is no row yet */
    size_t tables;   /* of the wanted ones that are there */
    size_t missing;  /* of the wanted ones that are not */
    size_t first;    /* index of the first missing table */
    bool seeded;     /* no seed row is missing */
};

static bool has_table(const struct finding *finding, const char *name)
{
    return columns_has(&finding->columns, name, NULL);
}

static enum status lacks_column(const char *table, const char *column,
                                struct diag *diag)
{
    return diag_set(diag, STATUS_REFUSED,
                    "table %s has no column %s: it is not the table this "
                    "program uses; give it another name in schema.tables, or "
                    "add the column as `moontide schema print` shows it",
                    table, column);
}

/* A newer schema may have changed anything, so this comes first. */
static enum status find_version(struct db *db, const struct names *names,
                                struct finding *finding, struct diag *diag)
{
    const char *table = names->table[TABLE_SCHEMA_VERSION];
    bool found;
    enum status status;

    finding->version = SCHEMA_VERSION;
    if (!has_table(finding, table))
        return STATUS_OK;
    if (!columns_has(&finding->columns, table, "id"))
        return lacks_column(table, "id", diag);
    if (!columns_has(&finding->columns, table, "version"))
        return lacks_column(table, "version", diag);
    status = fill_query(db, names, SQL_SCHEMA_VERSION_READ, &finding->version,
                        &found, diag);
    if (status != STATUS_OK)
        return status;
    if (!found)
        finding->version = SCHEMA_VERSION;
    if (finding->version > SCHEMA_VERSION)
        return diag_set(diag, STATUS_REFUSED,
                        "the schema of this database has version %" PRId64
                        " (table %s) and this program knows %d: it belongs "
                        "to a newer moontide; use that one",
                        finding->version, table, SCHEMA_VERSION);
    return STATUS_OK;
}

static enum status find_partitions(struct db *db,
                                   const struct schema_options *options,
                                   const struct finding *finding,
                                   struct diag *diag)
{
    const char *table = options->names->table[TABLE_PARTITION_METADATA];
    const char *lacking;

    if (!has_table(finding, table))
        return STATUS_OK;
    lacking = columns_lacking(&finding->columns, table,
                              TABLE_PARTITION_METADATA);
    if (lacking != NULL)
        return lacks_column(table, lacking, diag);
    return seed_check_partitions(db, options->names, options->partitions, diag);
}

static void find_tables(const struct names *names, struct finding *finding)
{
    finding->tables = 0;
    finding->missing = 0;
    for (size_t i = 0; i < names_tables(names); i++) {
        enum table_id like;
        const char *name = names_table(names, i, &like);

        if (name == NULL)
            continue;
        if (has_table(finding, name)) {
            finding->tables++;
        } else {
            if (finding->missing == 0)
                finding->first = i;
            finding->missing++;
        }
    }
}

static enum status check_columns(const struct names *names,
                                 const struct finding *finding,
                                 struct diag *diag)
{
    for (size_t i = 0; i < names_tables(names); i++) {
        enum table_id like;
        const char *name = names_table(names, i, &like);
        const char *collation;
        const char *lacking;

        if (name == NULL || !has_table(finding, name))
            continue;
        lacking = columns_lacking(&finding->columns, name, like);
        if (lacking != NULL)
            return lacks_column(name, lacking, diag);
        lacking = columns_merging(&finding->columns, name, like, &collation);
        if (lacking != NULL)
            return diag_set(diag, STATUS_REFUSED,
                            "table %s compares column %s by %s, which takes "
                            "keys for one that differ, such as A-1 and a-1 or "
                            "one with a blank at its end: alter the column to "
                            "what `moontide schema print` shows",
                            name, lacking, collation);
    }
    return STATUS_OK;
}

/* Looks at everything and refuses what no start can mend. The caller owns the
 * transaction; columns_free is owed in any case. */
static enum status inspect(struct db *db, const struct schema_options *options,
                           struct finding *finding, struct diag *diag)
{
    enum status status;

    *finding = (struct finding){.columns = COLUMNS_EMPTY};
    status = columns_read(db, &finding->columns, diag);
    if (status == STATUS_OK)
        status = find_version(db, options->names, finding, diag);
    if (status == STATUS_OK)
        status = find_partitions(db, options, finding, diag);
    if (status != STATUS_OK)
        return status;
    find_tables(options->names, finding);
    /* The columns of an older version are the upgrade's business. */
    if (finding->version < SCHEMA_VERSION)
        return STATUS_OK;
    status = check_columns(options->names, finding, diag);
    if (status != STATUS_OK || finding->missing > 0)
        return status;
    status = seed_complete(db, options->names, &finding->seeded, diag);
    if (status == STATUS_OK)
        status = seed_check_counters(db, options->names, diag);
    if (status == STATUS_OK)
        status = seed_check_aggregates(db, options->names, diag);
    return status;
}

static enum status is_older(const struct finding *finding, struct diag *diag)
{
    return diag_set(diag, STATUS_REFUSED,
                    "the schema of this database has version %" PRId64
                    " and this program needs %d: run `moontide schema "
                    "upgrade`",
                    finding->version, SCHEMA_VERSION);
}

static enum status is_missing(struct db *db, const struct names *names,
                              const struct finding *finding, enum status status,
                              const char *remedy, struct diag *diag)
{
    enum table_id like;
    const char *table = names_table(names, finding->first, &like);
    const char *script = fill_script_of(db_dialect(db), like);

    return diag_set(
        diag, status,
        "table %s is missing in %s, or its user has no right on "
        "it (%zu of %zu tables are there)%s; sql/%s/schema/*-%s.sql creates it",
        table, db_url_shown(db), finding->tables,
        finding->tables + finding->missing, remedy, db_dialect(db),
        script != NULL ? script : "?");
}

/* --- making ready -------------------------------------------------------- */

static enum status apply_one(void *arg, struct text filled, const char *table,
                             struct diag *diag)
{
    (void)table;
    return db_script(arg, filled, DB_HOST, diag);
}

/* Every script says IF NOT EXISTS, so all of them are applied. */
static enum status apply_scripts(struct db *db, const struct names *names,
                                 struct diag *diag)
{
    size_t count = 0;
    const struct catalog_script *scripts = catalog_scripts(db_dialect(db),
                                                           &count);

    for (size_t i = 0; i < count; i++) {
        enum status status = fill_each(scripts[i].text, names, apply_one, db,
                                       diag);

        if (status != STATUS_OK)
            return diag_wrap(diag, "schema script \"%s\"", scripts[i].name);
    }
    return STATUS_OK;
}

static void report_tables(struct db *db, const struct names *names,
                          const struct finding *finding, struct buffer *report)
{
    for (size_t i = 0; i < names_tables(names); i++) {
        enum table_id like;
        const char *name = names_table(names, i, &like);

        if (name != NULL && !has_table(finding, name))
            buffer_printf(report, "created table %s (script %s)\n", name,
                          fill_script_of(db_dialect(db), like));
    }
}

/* Upgrades, creates and seeds what `finding` says, in a transaction that
 * writes. `finding` is what holds afterwards. */
static enum status mend(struct db *db, const struct schema_options *options,
                        struct finding *finding, struct buffer *report,
                        struct diag *diag)
{
    const struct names *names = options->names;
    bool older = finding->version < SCHEMA_VERSION;
    bool seeded = true;
    enum status status = STATUS_OK;

    if (older)
        status = upgrade_run(db, names, finding->version, report, diag);
    if (status == STATUS_OK && (older || finding->missing > 0)) {
        status = apply_scripts(db, names, diag);
        if (status == STATUS_OK && report != NULL)
            report_tables(db, names, finding, report);
    }
    if (status == STATUS_OK && older)
        status = upgrade_record(db, names, diag);
    if (status == STATUS_OK)
        status = seed_complete(db, names, &seeded, diag);
    if (status == STATUS_OK && !seeded)
        status = seed_insert(db, names, options->partitions, diag);
    if (status != STATUS_OK)
        return status;
    if (report != NULL && !seeded)
        buffer_append_string(report, "inserted the rows that were missing "
                                     "(partition count, counters, marks)\n");

    columns_free(&finding->columns);
    status = inspect(db, options, finding, diag);
    if (status == STATUS_OK && finding->missing > 0)
        status = is_missing(db, names, finding, STATUS_PERMANENT,
                            " although its script was applied", diag);
    return status;
}

static bool in_place(const struct finding *finding)
{
    return finding->version == SCHEMA_VERSION && finding->missing == 0 &&
           finding->seeded;
}

/* How long to look at tables that another program is creating. */
#define LOOK_FOR (2 * CLOCK_SECOND)

static enum status look_once(struct db *db,
                             const struct schema_options *options,
                             struct finding *finding, struct diag *diag)
{
    enum status status = db_begin_read(db, diag);

    if (status != STATUS_OK)
        return status;
    status = inspect(db, options, finding, diag);
    db_rollback(db);
    return status;
}

/* A first look without the writer's lock, which is all when everything is in
 * place. A view of tables that change meanwhile is a conflict. */
static enum status look(struct db *db, const struct schema_options *options,
                        struct finding *finding, struct diag *diag)
{
    int64_t end = clock_monotonic() + LOOK_FOR;
    enum status status = look_once(db, options, finding, diag);

    while (status == STATUS_CONFLICT && clock_monotonic() < end) {
        columns_free(&finding->columns);
        status = look_once(db, options, finding, diag);
    }
    return status;
}

static enum status check_allowed(struct db *db,
                                 const struct schema_options *options,
                                 const struct finding *finding, bool create,
                                 struct diag *diag)
{
    if (create)
        return STATUS_OK;
    if (finding->version < SCHEMA_VERSION)
        return is_older(finding, diag);
    if (finding->missing > 0)
        return is_missing(db, options->names, finding, STATUS_CONFIG,
                          " and schema.create is off", diag);
    return STATUS_OK;
}

static enum status make_ready(struct db *db,
                              const struct schema_options *options, bool create,
                              struct buffer *report, struct diag *diag)
{
    struct finding finding = {.columns = COLUMNS_EMPTY};
    bool ready;
    enum status status;

    status = look(db, options, &finding, diag);
    if (status == STATUS_OK)
        status = check_allowed(db, options, &finding, create, diag);
    ready = in_place(&finding);
    columns_free(&finding.columns);
    if (status != STATUS_OK || ready)
        return status;

    /* Somebody else may have been faster: look again under the lock. */
    status = db_begin_schema(db, diag);
    if (status != STATUS_OK)
        return status;
    status = inspect(db, options, &finding, diag);
    if (status == STATUS_OK)
        status = check_allowed(db, options, &finding, create, diag);
    if (status == STATUS_OK && !in_place(&finding))
        status = mend(db, options, &finding, report, diag);
    columns_free(&finding.columns);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    return status;
}

enum status schema_prepare(struct db *db, const struct schema_options *options,
                           struct diag *diag)
{
    return make_ready(db, options, options->create, NULL, diag);
}

enum status schema_upgrade(struct db *db, const struct schema_options *options,
                           struct buffer *report, struct diag *diag)
{
    struct buffer lines = BUFFER_EMPTY;
    enum status status = make_ready(db, options, true, &lines, diag);

    if (status == STATUS_OK && lines.len == 0)
        buffer_printf(report,
                      "the schema has version %d and is complete: there was "
                      "nothing to do\n",
                      SCHEMA_VERSION);
    else if (status == STATUS_OK)
        buffer_append_text(report, buffer_text(&lines));
    buffer_free(&lines);
    return status;
}

enum status schema_verify(struct db *db, const struct schema_options *options,
                          struct diag *diag)
{
    struct finding finding = {.columns = COLUMNS_EMPTY};
    enum status status = look(db, options, &finding, diag);

    if (status == STATUS_OK && finding.tables == 0)
        status = diag_set(diag, STATUS_REFUSED,
                          "%s has no tables of moontide: `moontide append`, "
                          "`moontide run` or `moontide schema upgrade` "
                          "creates them",
                          db_url_shown(db));
    else if (status == STATUS_OK && finding.version < SCHEMA_VERSION)
        status = is_older(&finding, diag);
    else if (status == STATUS_OK && finding.missing > 0)
        status = is_missing(db, options->names, &finding, STATUS_REFUSED,
                            ": run `moontide schema upgrade`", diag);
    else if (status == STATUS_OK && !finding.seeded)
        status = diag_set(diag, STATUS_REFUSED,
                          "%s lacks the partition count, a counter or a "
                          "mark: run `moontide schema upgrade`",
                          db_url_shown(db));
    columns_free(&finding.columns);
    return status;
}
