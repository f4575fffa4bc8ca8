/*
 * Charge: the attempt of a dead worker is counted once, for the message it
 * made, while its leases are still the dead one's; and what is counted before
 * it is made is taken back alone; on every database.
 */
#include "topic_fixture.h"

#include "base/hash.h"
#include "consumer/careful.h"
#include "consumer/careful_page.h"
#include "consumer/charge.h"
#include "consumer/registry.h"
#include "topic/event_page.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define DEAD   "instance-dead"
#define SOURCE "event-store"

struct world {
    struct fixture f;
    const char *server; /* environment variable, NULL: SQLite in memory */
    char name[48];
    struct log log;
    struct clock clock;
    struct consumer_env env;
    struct consumer_row row;
    struct attempt attempt;
    struct message_place {
        int64_t position;
        int partition;
    } at[6]; /* of the messages appended, from 1 */
};

static const char *const servers[] = {NULL, "POSTGRES_URL", "MARIADB_URL"};
static size_t server; /* of the group under way */

/* --- a database of its own ------------------------------------------------ */

static const char *server_url(const char *variable)
{
    const char *url = getenv(variable);

    if (url == NULL || *url == '\0')
        fail_msg("%s is not set: see scripts/servers", variable);
    return url;
}

static void server_run(struct world *w, const char *verb)
{
    struct db_options options = {.url = server_url(w->server)};
    char text[128];
    struct db_sql sql;
    struct db *db;

    snprintf(text, sizeof(text), "%s DATABASE %s", verb, w->name);
    sql = db_sql_make(text_of(text), DB_HOST);
    check_ok(&w->f, db_open(&options, &db, &w->f.diag));
    check_ok(&w->f, db_execute(db, &sql, NULL, 0, NULL, &w->f.diag));
    db_close(db);
}

static void connect_to(struct world *w)
{
    struct db_options options = {.url = "sqlite::memory:", .create = true};
    char url[1024];

    if (w->server != NULL) {
        const char *at = server_url(w->server);
        const char *host = strstr(at, "://") + 3;
        const char *query = strchr(at, '?');

        snprintf(url, sizeof(url), "%.*s/%s%s",
                 (int)((size_t)(host - at) + strcspn(host, "/?")), at, w->name,
                 query != NULL ? query : "");
        options.url = url;
    }
    check_ok(&w->f, db_open(&options, &w->f.db, &w->f.diag));
}

static void append_three(struct world *w)
{
    static const char *const keys[] = {"A", "B", "A"};

    for (int i = 1; i <= 3; i++) {
        struct append_result result = append_one(
            &w->f, event_of("bank", keys[i - 1], "{\"n\":1}"));

        w->at[i].position = result.position;
        w->at[i].partition = hash_partition(text_of(keys[i - 1]), PARTITIONS);
    }
}

static void set_position(struct world *w, int64_t position)
{
    char sql[128];

    snprintf(sql, sizeof(sql),
             "UPDATE CONSUMER_CHECKPOINTS SET position = %lld",
             (long long)position);
    run_sql(&w->f, sql);
}

/* The dead instance holds every partition but 11. */
static void own_partitions(struct world *w)
{
    for (int p = 0; p < PARTITIONS; p++) {
        char sql[256];

        snprintf(sql, sizeof(sql),
                 "INSERT INTO PARTITION_OWNERSHIP (consumer_type,"
                 " consumer_name, partition_no, instance_id, generation)"
                 " VALUES ('projection', 'sums', %d, '%s', 1)",
                 p, p == 11 ? "another" : DEAD);
        run_sql(&w->f, sql);
    }
}

/* An attempt of message 1, of key A, in a page that began at the start. */
static void make_attempt(struct world *w)
{
    struct event_page page = {.count = 0};
    const struct event_filter all = {.ntypes = 0};
    const struct event_range range = {0, w->at[1].position, 1, SIZE_MAX};
    struct attempt *a = &w->attempt;

    check_ok(&w->f, event_page_read(event_store_topic(w->f.store), w->f.db,
                                    &all, &range, &page, &w->f.diag));
    *a = (struct attempt){
        .started_at = 1,
        .kind = ATTEMPT_HANDLER,
        .type = "projection",
        .name = "sums",
        .source = SOURCE,
        .retry = {.attempts = 3,
                  .delay_us = 1000000,
                  .factor = 2,
                  .max_delay_us = 60000000},
        .position = w->at[1].position,
        .message_id = page.messages[0].id,
        .partition = w->at[1].partition,
        .attempt = 1,
        .has_key = true,
        .key = "A",
        .where = "handlers/sums.lua:7",
    };
    memcpy(a->consumer_id, w->row.id, sizeof(a->consumer_id));
    event_page_free(&page);
}

static int world_open(void **state)
{
    static int count;
    struct world *w = calloc(1, sizeof(*w));
    struct schema_options schema = {.partitions = PARTITIONS, .create = true};
    const struct consumer_name name = {"projection", "sums"};
    struct fixture *f = &w->f;

    w->server = servers[server];
    snprintf(w->name, sizeof(w->name), "moontide_charge_%d_%d", getpid(),
             count++);
    names_default(&f->names);
    if (w->server != NULL)
        server_run(w, "CREATE");
    connect_to(w);
    check_ok(f, catalog_open(db_dialect(f->db), f->names.fill, &f->catalog,
                             &f->diag));
    schema.names = &f->names;
    check_ok(f, schema_prepare(f->db, &schema, &f->diag));
    check_ok(f, event_store_open(db_dialect(f->db), &f->names, f->catalog,
                                 PARTITIONS, &f->store, &f->diag));
    w->env = (struct consumer_env){
        .db = f->db,
        .catalog = f->catalog,
        .names = &f->names,
        .topics = {{event_store_topic(f->store)}, 1},
        .ids = &f->ids,
        .clock = &w->clock,
        .log = &w->log,
        .partitions = PARTITIONS,
    };
    check_ok(f, db_begin(f->db, &f->diag));
    check_ok(f, registry_subscribe(f->db, f->catalog, &name, SOURCE, PARTITIONS,
                                   &f->ids, NOW, &w->row, &f->diag));
    check_ok(f, db_commit(f->db, NULL, &f->diag));
    own_partitions(w);
    append_three(w);
    set_position(w, 0);
    make_attempt(w);
    *state = w;
    return 0;
}

static int world_close(void **state)
{
    struct world *w = *state;

    event_store_close(w->f.store);
    db_close(w->f.db);
    catalog_close(w->f.catalog);
    names_free(&w->f.names);
    if (w->server != NULL)
        server_run(w, "DROP");
    free(w);
    return 0;
}

/* --- looking -------------------------------------------------------------- */

static bool charge(struct world *w)
{
    const struct attempt_end end = {.signal = SIGKILL};
    bool charged;

    check_ok(&w->f, charge_attempt(&w->env, DEAD, &w->attempt, &end, &charged,
                                   &w->f.diag));
    return charged;
}

static int64_t count_of(struct world *w, const char *where)
{
    char sql[512];

    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES WHERE %s",
             where);
    return integer_of(&w->f, sql);
}

static void expect_none(struct world *w)
{
    assert_false(charge(w));
    assert_int_equal(count_of(w, "1 = 1"), 0);
}

/* --- the tests ------------------------------------------------------------ */

static void records_the_message_as_failed_once(void **state)
{
    struct world *w = *state;

    assert_true(charge(w));
    assert_int_equal(
        count_of(w, "status = 'FAILED' AND failure_count = 1"
                    " AND resolved_key = 'A' AND message_position = 1"
                    " AND next_retry_at IS NOT NULL"
                    " AND message_copy LIKE '%happened%'"
                    " AND failure_reason = 'crash: handlers/sums.lua:7: the"
                    " worker ended in its handler (signal 9, Killed)'"),
        1);
    assert_int_equal(count_of(w, "1 = 1"), 1);
}

static void counts_an_attempt_once(void **state)
{
    struct world *w = *state;

    assert_true(charge(w));
    assert_false(charge(w));
    assert_int_equal(count_of(w, "failure_count = 1"), 1);
    w->attempt.after = ATTEMPT_RETRY;
    w->attempt.attempt = 2;
    assert_true(charge(w));
    assert_false(charge(w));
    assert_int_equal(count_of(w, "failure_count = 2 AND status = 'FAILED'"), 1);
    assert_int_equal(count_of(w, "1 = 1"), 1);
}

/* Whoever judges it is not made to wait. */
static void a_spent_budget_is_due_at_once(void **state)
{
    struct world *w = *state;

    w->attempt.retry.attempts = 1;
    assert_true(charge(w));
    assert_int_equal(count_of(w, "status = 'FAILED' AND failure_count = 1"
                                 " AND next_retry_at IS NULL"),
                     1);
}

static void counts_nothing_without_the_lease(void **state)
{
    struct world *w = *state;

    run_sql(&w->f, "UPDATE PARTITION_OWNERSHIP SET instance_id = 'next',"
                   " generation = 2 WHERE instance_id = '" DEAD "'");
    expect_none(w);
}

static void counts_nothing_without_the_lease_of_the_partition(void **state)
{
    struct world *w = *state;
    char sql[160];

    snprintf(sql, sizeof(sql),
             "UPDATE PARTITION_OWNERSHIP SET instance_id = NULL"
             " WHERE partition_no = %d",
             w->attempt.partition);
    run_sql(&w->f, sql);
    expect_none(w);
}

static void counts_nothing_for_what_is_done(void **state)
{
    struct world *w = *state;

    set_position(w, w->attempt.position);
    expect_none(w);
    w->attempt.after = ATTEMPT_RETRY;
    expect_none(w);
}

static void counts_nothing_in_an_older_epoch(void **state)
{
    struct world *w = *state;

    run_sql(&w->f, "UPDATE CONSUMERS SET epoch = 1");
    expect_none(w);
}

static void counts_nothing_for_who_is_gone(void **state)
{
    struct world *w = *state;

    run_sql(&w->f, "DELETE FROM CONSUMER_CHECKPOINTS");
    expect_none(w);
    run_sql(&w->f, "DELETE FROM CONSUMERS");
    expect_none(w);
}

static void counts_nothing_for_another_message_at_the_position(void **state)
{
    struct world *w = *state;

    w->attempt.message_id.bytes[15] ^= 1;
    expect_none(w);
}

static void counts_nothing_for_no_message(void **state)
{
    struct world *w = *state;

    w->attempt.kind = ATTEMPT_RESET;
    expect_none(w);
}

/* The page that met it stood at 0 in every partition of the dead one. */
static void a_key_function_is_counted_where_its_page_was_read(void **state)
{
    struct world *w = *state;

    run_sql(&w->f, "UPDATE CONSUMER_CHECKPOINTS SET position = 3"
                   " WHERE partition_no IN (2, 5)");
    w->attempt.kind = ATTEMPT_KEY;
    w->attempt.has_key = false;
    w->attempt.key[0] = '\0';
    w->attempt.position = 1;
    assert_true(charge(w));
    assert_int_equal(count_of(w, "unresolved"), PARTITIONS - 3);
    assert_int_equal(count_of(w, "partition_no IN (2, 5, 11)"), 0);
    assert_false(charge(w));
    w->attempt.after = ATTEMPT_RETRY;
    w->attempt.attempt = 2;
    assert_true(charge(w));
    assert_int_equal(count_of(w, "unresolved AND failure_count = 2"),
                     PARTITIONS - 3);
    assert_int_equal(count_of(w, "failure_reason LIKE '%its key function%'"),
                     PARTITIONS - 3);
}

/* A key of it was told by the retry, and the handler took the worker along. */
static void a_key_told_by_a_retry_counts_for_its_row(void **state)
{
    struct world *w = *state;

    w->attempt.kind = ATTEMPT_KEY;
    assert_true(charge(w));
    set_position(w, 1);
    w->attempt.kind = ATTEMPT_HANDLER;
    w->attempt.after = ATTEMPT_RETRY;
    w->attempt.attempt = 2;
    assert_true(charge(w));
    assert_int_equal(count_of(w, "failure_count = 2 AND unresolved"), 1);
    assert_int_equal(count_of(w, "NOT unresolved"), 0);
}

/* A page that is made with care counts before it asks for the keys, in the row
 * of one partition. A row of the key beside that would be applied, too. */
static void a_key_told_with_care_counts_for_the_counted_row(void **state)
{
    struct world *w = *state;
    char sql[256];

    w->attempt.kind = ATTEMPT_KEY;
    assert_true(charge(w));
    snprintf(sql, sizeof(sql),
             "DELETE FROM CONSUMER_UNDELIVERED_MESSAGES WHERE partition_no <>"
             " %d",
             w->attempt.partition == 3 ? 4 : 3);
    run_sql(&w->f, sql);
    run_sql(&w->f, "UPDATE CONSUMER_UNDELIVERED_MESSAGES"
                   " SET failure_reason = '" FAILURE_UNTOLD "'");
    w->attempt.kind = ATTEMPT_HANDLER;
    assert_true(charge(w));
    assert_int_equal(count_of(w, "1 = 1"), 1);
    assert_int_equal(count_of(w, "unresolved AND failure_count = 1 AND"
                                 " failure_reason LIKE 'crash: handlers/%'"),
                     1);
}

/* Another host has met the count, recorded the message for its own partitions
 * and passed it: without that row nobody there would see it again. */
static void
a_count_taken_back_leaves_what_other_hosts_have_recorded(void **state)
{
    struct world *w = *state;
    struct fixture *f = &w->f;
    struct consumer c = {.env = &w->env,
                         .row = w->row,
                         .source = SOURCE,
                         .own_key = true,
                         .arena = ARENA_EMPTY,
                         .counted = {.position = w->at[1].position,
                                     .partition = 3,
                                     .unresolved = true,
                                     .failures = 1}};
    struct undelivered_recorded *rows;
    size_t count;

    w->attempt.kind = ATTEMPT_KEY; /* it has a row in each partition */
    assert_true(charge(w));
    assert_int_equal(count_of(w, "unresolved AND partition_no IN (3, 4)"), 2);
    check_ok(f, db_begin(f->db, &f->diag));
    check_ok(f, undelivered_recorded(f->db, f->catalog, w->row.id, SOURCE,
                                     w->at[1].position - 1, w->at[1].position,
                                     &c.arena, &rows, &count, &f->diag));
    assert_int_equal(count, PARTITIONS - 1);
    check_ok(f, careful_take_back(&c, rows, &count, &f->diag));
    check_ok(f, db_commit(f->db, NULL, &f->diag));
    assert_int_equal(count, PARTITIONS - 2);
    assert_int_equal(count_of(w, "partition_no = 3"), 0);
    assert_int_equal(count_of(w, "unresolved AND status = 'FAILED'"),
                     PARTITIONS - 2);
    arena_free(&c.arena);
}

/* An older program has passed the message of one such row in partition 3, and
 * another host reads partition 5: nobody else has these messages any more. */
static void
a_counted_page_is_taken_back_only_ahead_and_where_it_is_read(void **state)
{
    struct world *w = *state;
    struct fixture *f = &w->f;
    int64_t partitions[] = {3, 4};
    struct poll poll = {.partitions = partitions, .npartitions = 2};
    struct recorded recorded = {.count = 0};
    struct consumer c = {.env = &w->env,
                         .row = w->row,
                         .source = SOURCE,
                         .own_key = true,
                         .arena = ARENA_EMPTY};

    checkpoints_init(&c.stored, PARTITIONS);
    c.stored.position[3] = w->at[1].position;
    w->attempt.kind = ATTEMPT_KEY; /* it has a row in each partition */
    assert_true(charge(w));
    run_sql(f, "UPDATE CONSUMER_UNDELIVERED_MESSAGES SET failure_count = 0,"
               " failure_reason = '" FAILURE_UNTOLD_PAGE "'");
    check_ok(f, db_begin(f->db, &f->diag));
    check_ok(f,
             recorded_read(&c, &poll, w->at[1].position, &recorded, &f->diag));
    assert_int_equal(recorded.count, PARTITIONS - 1);
    check_ok(f, careful_page_take_back(&c, &poll, &recorded, &f->diag));
    check_ok(f, db_commit(f->db, NULL, &f->diag));
    assert_int_equal(recorded.count, 1);
    assert_int_equal(recorded.rows[0].partition, 3);
    assert_int_equal(count_of(w, "partition_no = 4"), 0);
    assert_int_equal(count_of(w, "partition_no IN (3, 5)"), 2);
    assert_int_equal(count_of(w, "1 = 1"), PARTITIONS - 2);
    checkpoints_free(&c.stored);
    arena_free(&c.arena);
}

/* Whoever asks it again would die of it again. */
static void a_death_in_on_error_halts_the_consumer(void **state)
{
    struct world *w = *state;

    w->attempt.kind = ATTEMPT_ON_ERROR;
    w->attempt.attempt = 3;
    assert_true(charge(w));
    assert_int_equal(count_of(w, "status = 'HALTED' AND failure_count = 3"), 1);
    assert_int_equal(integer_of(&w->f, "SELECT count(*) FROM CONSUMERS"
                                       " WHERE state = 'HALTED' AND"
                                       " halt_reason = 'APPLY_ERROR'"),
                     1);
    assert_false(charge(w));
}

static void what_waits_for_an_operator_stays(void **state)
{
    struct world *w = *state;

    assert_true(charge(w));
    run_sql(&w->f, "UPDATE CONSUMER_UNDELIVERED_MESSAGES"
                   " SET status = 'DEAD_LETTER'");
    w->attempt.after = ATTEMPT_RETRY;
    w->attempt.attempt = 2;
    assert_false(charge(w));
    assert_int_equal(count_of(w, "failure_count = 1"), 1);
}

static void a_hang_is_told_as_one(void **state)
{
    struct world *w = *state;
    const struct attempt_end end = {
        .hung = true, .limit_us = 200000, .signal = SIGKILL};
    bool charged;

    check_ok(&w->f, charge_attempt(&w->env, DEAD, &w->attempt, &end, &charged,
                                   &w->f.diag));
    assert_true(charged);
    assert_int_equal(count_of(w, "failure_reason LIKE 'timeout: "
                                 "handlers/sums.lua:7: handler ran longer than"
                                 " limits.time = 200ms;%'"),
                     1);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_open, world_close)
    const struct CMUnitTest tests[] = {
        TEST(records_the_message_as_failed_once),
        TEST(counts_an_attempt_once),
        TEST(a_spent_budget_is_due_at_once),
        TEST(counts_nothing_without_the_lease),
        TEST(counts_nothing_without_the_lease_of_the_partition),
        TEST(counts_nothing_for_what_is_done),
        TEST(counts_nothing_in_an_older_epoch),
        TEST(counts_nothing_for_who_is_gone),
        TEST(counts_nothing_for_another_message_at_the_position),
        TEST(counts_nothing_for_no_message),
        TEST(a_key_function_is_counted_where_its_page_was_read),
        TEST(a_key_told_by_a_retry_counts_for_its_row),
        TEST(a_key_told_with_care_counts_for_the_counted_row),
        TEST(a_count_taken_back_leaves_what_other_hosts_have_recorded),
        TEST(a_counted_page_is_taken_back_only_ahead_and_where_it_is_read),
        TEST(a_death_in_on_error_halts_the_consumer),
        TEST(what_waits_for_an_operator_stays),
        TEST(a_hang_is_told_as_one),
    };
    int failed = 0;

    for (server = 0; server < sizeof(servers) / sizeof(servers[0]); server++)
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
