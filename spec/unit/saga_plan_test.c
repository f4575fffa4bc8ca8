/*
 * What a batch of sagas reads depends on the batch, not on how many sagas,
 * steps, deadlines and messages there are: each statement goes by an index,
 * also on tables that nobody has analyzed; on every database.
 */
#include "db_support.h"

#include "base/arena.h"
#include "base/clock.h"
#include "db/catalog.h"
#include "model/saga_deadline.h"
#include "model/saga_instance.h"
#include "model/saga_step_store.h"
#include "outbox/outbox.h"
#include "schema/schema.h"

#define TYPE  "order"
#define BASE  INT64_C(1709200800000001)
#define SAGAS 5000

/* The statements that are looked at, with the parameters made below. */
enum params { IDS, INSTANCES, NAMES, DEADLINES, CANCELLED, EXPIRED, SENT, ONE };

struct look {
    enum sql_statement statement;
    enum params params;
    /* Parts of the plan, one for each database. */
    const char *sqlite, *postgres, *mysql;
};

static const struct look looks[] = {
    {SQL_SAGA_INSTANCES_LOAD, IDS, "(saga_type=? AND saga_id=?)",
     "uq_saga_instances", "|uq_SAGA_INSTANCES|"},
    {SQL_SAGA_INSTANCE_LOCK, ONE, "(saga_type=? AND saga_id=?)",
     "uq_saga_instances", "|uq_SAGA_INSTANCES|"},
    {SQL_SAGA_INSTANCES_EXPIRED, EXPIRED,
     "idx_SAGA_INSTANCES_completed_at (completed_at<?)",
     "idx_saga_instances_completed_at", "|idx_SAGA_INSTANCES_completed_at|"},
    {SQL_SAGA_STEPS_LOAD, INSTANCES, "(instance_id=?)", "uq_saga_steps",
     "|uq_SAGA_STEPS|"},
    {SQL_SAGA_STEPS_READ, ONE, "(instance_id=?)", "saga_steps",
     "|uq_SAGA_STEPS|"},
    {SQL_SAGA_STEPS_DELETE, INSTANCES, "(instance_id=?)", "uq_saga_steps",
     "|uq_SAGA_STEPS|"},
    {SQL_SAGA_STEPS_UNDECLARED, NAMES, "(instance_id=?)", "uq_saga_steps",
     "|uq_SAGA_STEPS|"},
    {SQL_SAGA_STEPS_CORRELATION, ONE, "(event_id=?)", "uq_outbox",
     "|uq_OUTBOX|"},
    {SQL_DEADLINE_CLEAR, IDS, "(saga_type=? AND saga_id=?)",
     "(saga_id)::text = gone.id", "|uq_SAGA_DEADLINES|"},
    {SQL_DEADLINE_CANCEL, CANCELLED, "(saga_type=? AND saga_id=? AND name=?)",
     "(name)::text = gone.name", "|uq_SAGA_DEADLINES|"},
    {SQL_DEADLINE_FIRED, DEADLINES, "(id=?)", "saga_deadlines_pkey",
     "|PRIMARY|"},
    {SQL_OUTBOX_KNOWN, INSTANCES, "(event_id=?)", "uq_outbox", "|uq_OUTBOX|"},
    {SQL_OUTBOX_RESEND, SENT, "(event_id=? AND outbox_route=?)", "uq_outbox",
     "|uq_OUTBOX|"},
};

/* --- many rows ------------------------------------------------------------ */

struct world {
    struct fixture *f;
    struct names names;
    struct catalog *catalog;
    struct uuid_source ids;
    struct clock clock;
    struct arena arena;
    struct text saga_ids[SAGAS];
    struct saga_instance sagas[SAGAS];
    struct saga_steps steps[SAGAS];
};

static void fill_saga(struct world *w, int i)
{
    struct saga_instance *saga = &w->sagas[i];
    struct saga_step_row *rows = arena_alloc_zero(&w->arena, 2 * sizeof(*rows));
    char text[16];

    snprintf(text, sizeof(text), "O-%d", i);
    w->saga_ids[i] = arena_copy(&w->arena, text_of(text));
    *saga = (struct saga_instance){
        .saga_id = w->saga_ids[i],
        .id = uuid_v7(&w->ids, BASE + i * CLOCK_SECOND),
        .state = TEXT_LITERAL("{}"),
        .completed = i % 2 == 0,
        .completed_at = BASE + i * CLOCK_SECOND,
    };
    for (int n = 0; n < 2; n++)
        rows[n] = (struct saga_step_row){
            .name = n == 0 ? TEXT_LITERAL("one") : TEXT_LITERAL("two"),
            .step = (size_t)n,
            .round = 1,
            .state = SAGA_STEP_SUCCEEDED,
            .command_id = uuid_v7(&w->ids, BASE),
            .sent_at = BASE,
            .made = true,
        };
    w->steps[i] = (struct saga_steps){
        .instance = saga->id, .arena = &w->arena, .rows = rows, .nrows = 2};
}

static void store_deadlines(struct world *w)
{
    struct fixture *f = w->f;
    struct saga_deadlines *deadlines = saga_deadlines_new(
        &(struct saga_deadlines_options){.saga_type = TYPE,
                                         .db = f->db,
                                         .catalog = w->catalog,
                                         .names = &w->names,
                                         .ids = &w->ids,
                                         .clock = &w->clock,
                                         .payload_limit = 100});
    const struct saga_deadline_set set = {.name = TEXT_LITERAL("pay"),
                                          .at_us = BASE,
                                          .payload = TEXT_LITERAL("null"),
                                          .metadata = TEXT_LITERAL("{}")};

    for (int i = 0; i < SAGAS; i++) {
        const struct saga_deadline_of of = {.saga_id = w->saga_ids[i],
                                            .instance = w->sagas[i].id};

        ok(f, saga_deadlines_set(deadlines, &of, &set, NULL, &f->diag));
    }
    begin(f);
    ok(f, saga_deadlines_send(deadlines, f->db, &f->diag));
    commit(f);
    saga_deadlines_free(deadlines);
}

static void store_messages(struct world *w)
{
    struct fixture *f = w->f;
    const struct outbox outbox = {f->db, w->catalog, &w->names, &w->ids};
    struct outgoing *messages = arena_alloc_zero(&w->arena,
                                                 SAGAS * sizeof(*messages));
    size_t bad;

    for (int i = 0; i < SAGAS; i++)
        messages[i] = (struct outgoing){
            .route = TEXT_LITERAL("mail"),
            .type = TEXT_LITERAL("mail.Send"),
            .payload = TEXT_LITERAL("{}"),
            .event_id = w->steps[i].rows[0].command_id,
            .occurred_at = BASE,
        };
    begin(f);
    ok(f,
       outbox_stage(&outbox, messages, SAGAS, BASE, &w->arena, &bad, &f->diag));
    commit(f);
}

static void store_sagas(struct world *w)
{
    struct fixture *f = w->f;
    const struct saga_instance **rows = arena_alloc(
        &w->arena, SAGAS * sizeof(const struct saga_instance *));
    struct saga_step_owner *owners = arena_alloc(&w->arena,
                                                 SAGAS * sizeof(*owners));
    struct saga_instances instances;
    struct saga_step_store store;

    for (int i = 0; i < SAGAS; i++) {
        fill_saga(w, i);
        rows[i] = &w->sagas[i];
        owners[i] = (struct saga_step_owner){w->saga_ids[i], &w->steps[i]};
    }
    saga_instances_init(&instances, TYPE, &w->names, w->catalog);
    saga_step_store_init(&store, TYPE, &w->names, w->catalog);
    begin(f);
    ok(f, saga_instances_insert(&instances, f->db, rows, SAGAS, 0, &w->arena,
                                &f->diag));
    ok(f, saga_step_store_save(&store, f->db, owners, SAGAS, &w->ids, BASE, 0,
                               &w->arena, &f->diag));
    commit(f);
    store_deadlines(w);
    store_messages(w);
}

/* Nobody analyzes them behind the test's back. */
static void open_world(struct world *w, struct fixture *f)
{
    struct schema_options schema = {.partitions = 12, .create = true};

    *w = (struct world){.f = f};
    names_default(&w->names);
    schema.names = &w->names;
    ok(f,
       catalog_open(db_dialect(f->db), w->names.fill, &w->catalog, &f->diag));
    ok(f, schema_prepare(f->db, &schema, &f->diag));
    if (strcmp(db_dialect(f->db), "postgres") == 0) {
        run(f, "ALTER TABLE SAGA_INSTANCES SET (autovacuum_enabled = off)");
        run(f, "ALTER TABLE SAGA_STEPS SET (autovacuum_enabled = off)");
        run(f, "ALTER TABLE SAGA_DEADLINES SET (autovacuum_enabled = off)");
        run(f, "ALTER TABLE OUTBOX SET (autovacuum_enabled = off)");
    }
    store_sagas(w);
}

static void close_world(struct world *w)
{
    arena_free(&w->arena);
    catalog_close(w->catalog);
    names_free(&w->names);
}

/* --- plans ---------------------------------------------------------------- */

#define FEW 5

static size_t make_params(struct world *w, enum params which,
                          struct db_value params[3])
{
    struct text *ids = arena_alloc(&w->arena, 3 * FEW * sizeof(*ids));
    struct text *instances = ids + FEW, *names = ids + 2 * FEW;
    char id[UUID_TEXT_LEN + 1];

    for (size_t i = 0; i < FEW; i++) {
        ids[i] = w->saga_ids[100 * i];
        uuid_format(&w->sagas[100 * i].id, id);
        instances[i] = arena_copy(&w->arena, text_of(id));
        names[i] = which == SENT ? TEXT_LITERAL("mail") : TEXT_LITERAL("pay");
    }
    params[0] = db_string(TYPE);
    switch (which) {
    case IDS:
        params[1] = db_texts(ids, FEW);
        return 2;
    case INSTANCES:
    case DEADLINES:
        params[0] = db_texts(instances, FEW);
        return 1;
    case NAMES:
        params[1] = params[2] = db_texts(names, 1);
        return 3;
    case CANCELLED:
        params[1] = db_texts(ids, FEW);
        params[2] = db_texts(names, FEW);
        return 3;
    case EXPIRED:
        params[0] = db_timestamp(BASE + 20 * CLOCK_SECOND);
        params[1] = db_integer(10);
        return 2;
    case SENT:
        params[0] = db_texts(names, FEW);
        params[1] = db_texts(instances, FEW);
        params[2] = db_timestamp(BASE);
        return 3;
    case ONE:
        params[1] = db_text_value(w->saga_ids[7]);
        return 2;
    }
    return 0;
}

/* One line for each row of the plan, its texts between bars. */
static void explain(struct world *w, const struct look *look,
                    struct buffer *plan)
{
    struct fixture *f = w->f;
    struct buffer text = BUFFER_EMPTY;
    struct db_value params[3];
    size_t nparams = make_params(w, look->params, params);
    struct db_sql sql;
    struct db_rows *found;
    bool more;

    buffer_append_string(&text,
                         has_server(f) ? "EXPLAIN " : "EXPLAIN QUERY PLAN ");
    buffer_append_text(&text, catalog_sql(w->catalog, look->statement)->text);
    sql = db_sql_make(buffer_text(&text), DB_HOST);
    begin(f);
    ok(f, db_query(f->db, &sql, params, nparams, &found, &f->diag));
    for (ok(f, db_next(found, &more, &f->diag)); more;
         ok(f, db_next(found, &more, &f->diag))) {
        buffer_append_char(plan, '\n');
        for (size_t i = 0; i < db_columns(found); i++) {
            buffer_append_char(plan, '|');
            if (db_column_type(found, i) == DB_TEXT)
                buffer_append_text(plan, db_get_text(found, i));
        }
    }
    db_rows_close(found);
    db_rollback(f->db);
    buffer_free(&text);
}

/* A line that reads a whole table; lists that came as parameters are none. */
static bool reads_all(const char *line)
{
    if (strstr(line, "json_table") != NULL || strstr(line, "VIRTUAL") != NULL ||
        strstr(line, "CONSTANT") != NULL || strstr(line, "SCAN s") == line)
        return false;
    return strstr(line, "SCAN ") != NULL || strstr(line, "Seq Scan") != NULL ||
           strstr(line, "|ALL|") != NULL || strstr(line, "|index|") != NULL;
}

static void assert_plan(struct world *w, const struct look *look)
{
    const char *dialect = db_dialect(w->f->db);
    const char *part = strcmp(dialect, "sqlite") == 0     ? look->sqlite
                       : strcmp(dialect, "postgres") == 0 ? look->postgres
                                                          : look->mysql;
    struct buffer plan = BUFFER_EMPTY, whole = BUFFER_EMPTY;
    char *rest = NULL;

    explain(w, look, &plan);
    buffer_append_text(&whole, buffer_text(&plan));
    if (plan.data == NULL || strstr(plan.data, part) == NULL)
        fail_msg("no %s in the plan of%s\n%s", part,
                 catalog_sql(w->catalog, look->statement)->text.data,
                 buffer_text(&whole).data);
    for (char *line = strtok_r(plan.data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        if (reads_all(line))
            fail_msg("reads all: %s\nin%s", line, whole.data);
    buffer_free(&plan);
    buffer_free(&whole);
}

static void every_statement_goes_by_an_index(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    open_world(w, *state);
    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++)
        assert_plan(w, &looks[i]);
    close_world(w);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_sqlite(every_statement_goes_by_an_index),
        on_postgres(every_statement_goes_by_an_index),
        on_mariadb(every_statement_goes_by_an_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
