/*
 * Compaction: of two hosts at one topic one goes on, whichever of them it is,
 * and nothing is deleted by the other; what is superseded by a message that was
 * not compacted yet stays. What a batch has waited for another writer says
 * nothing of its size.
 */
#include "temp_database.h"
#include "topic_fixture.h"

#include "base/clock.h"
#include "topic/compaction.h"

#include <pthread.h>
#include <time.h>

static const struct compaction_policy small = {
    .before_us = INT64_MAX, .tombstones_us = INT64_MIN, .messages = 2};

static void put(struct fixture *f, int position, const char *key)
{
    char sql[512];

    snprintf(sql, sizeof(sql),
             "INSERT INTO READ_MODEL_CAPTURE_RECORDS VALUES"
             " ('00000000-0000-7000-8000-%012d', 't', %d, 1, '%s', 'm', 0,"
             " '{}', NULL, 1, 0, '2024-02-29T00:00:00.000000Z')",
             position, position, key);
    run_sql(f, sql);
    snprintf(sql, sizeof(sql),
             "INSERT INTO READ_MODEL_CAPTURE_POSITIONS VALUES ('t', %d)"
             " ON CONFLICT DO UPDATE SET val = excluded.val",
             position);
    run_sql(f, sql);
}

static struct compaction find(struct fixture *f)
{
    struct compaction compaction = {.through = 0};
    bool found;

    check_ok(f,
             compaction_next(f->db, f->catalog, &compaction, &found, &f->diag));
    assert_true(found);
    assert_text(buffer_text(&compaction.source), "read-model:t");
    return compaction;
}

static struct compaction_report step(struct fixture *f,
                                     struct compaction *compaction)
{
    struct compaction_report report;

    check_ok(f, compaction_step(f->db, f->catalog, &small, compaction, &report,
                                &f->diag));
    return report;
}

static void step_conflicts(struct fixture *f, struct compaction *compaction)
{
    int64_t before = integer_of(
        f, "SELECT count(*) FROM READ_MODEL_CAPTURE_RECORDS");
    struct compaction_report report;

    assert_int_equal(compaction_step(f->db, f->catalog, &small, compaction,
                                     &report, &f->diag),
                     STATUS_CONFLICT);
    assert_int_equal(
        integer_of(f, "SELECT count(*) FROM READ_MODEL_CAPTURE_RECORDS"),
        before);
}

static void a_batch_deletes_what_its_messages_supersede(void **state)
{
    struct fixture *f = *state;
    struct compaction compaction;
    struct compaction_report report;

    for (int i = 1; i <= 5; i++)
        put(f, i, "a");
    compaction = find(f);
    assert_int_equal(compaction.through, COMPACTION_NEVER);
    report = step(f, &compaction);
    assert_int_equal(report.passed, 2);
    assert_int_equal(report.deleted, 1);
    assert_true(report.more);
    assert_int_equal(
        integer_of(f, "SELECT compacted_through FROM TOPIC_COMPACTION"), 2);
    report = step(f, &compaction);
    assert_int_equal(report.deleted, 2);
    report = step(f, &compaction);
    assert_int_equal(report.deleted, 1);
    assert_false(report.more);
    assert_int_equal(integer_of(f,
                                "SELECT max(topic_position) FROM"
                                " READ_MODEL_CAPTURE_RECORDS GROUP BY topic"),
                     5);
    assert_int_equal(
        integer_of(f, "SELECT count(*) FROM READ_MODEL_CAPTURE_RECORDS"), 1);
    compaction_free(&compaction);
}

static void of_two_hosts_that_begin_a_topic_one_goes_on(void **state)
{
    struct fixture *f = *state;
    struct compaction here, there;

    for (int i = 1; i <= 6; i++)
        put(f, i, i % 2 == 0 ? "a" : "b");
    here = find(f);
    there = find(f);
    (void)step(f, &here);
    step_conflicts(f, &there);
    (void)step(f, &here);
    (void)step(f, &here);
    assert_int_equal(
        integer_of(f, "SELECT compacted_through FROM TOPIC_COMPACTION"), 6);
    compaction_free(&here);
    compaction_free(&there);
}

static void
of_two_hosts_that_go_on_one_does_and_progress_never_falls(void **state)
{
    struct fixture *f = *state;
    struct compaction here, there;

    for (int i = 1; i <= 8; i++)
        put(f, i, i % 2 == 0 ? "a" : "b");
    here = find(f);
    (void)step(f, &here);
    there = find(f);
    assert_int_equal(there.through, 2);
    (void)step(f, &there);
    step_conflicts(f, &here);
    step_conflicts(f, &here);
    assert_int_equal(
        integer_of(f, "SELECT compacted_through FROM TOPIC_COMPACTION"), 4);
    compaction_free(&here);
    compaction_free(&there);
}

/* Another session that holds the right to write. */
struct writer {
    struct db *db;
    int64_t released; /* monotonic */
};

static void *hold_a_while(void *arg)
{
    static const struct timespec long_enough = {.tv_nsec = 200000000};
    struct writer *writer = arg;

    nanosleep(&long_enough, NULL);
    writer->released = clock_monotonic();
    db_rollback(writer->db);
    return NULL;
}

/* Whether a batch that met the writer tells of less time than it was held up;
 * on a busy machine the batch itself may take as long. */
static bool is_told_without_the_wait(struct fixture *f, struct writer *writer,
                                     struct compaction *compaction)
{
    struct compaction_report report;
    pthread_t thread;
    int64_t began, took, held;

    check_ok(f, db_begin(writer->db, &f->diag));
    began = clock_monotonic();
    assert_int_equal(pthread_create(&thread, NULL, hold_a_while, writer), 0);
    report = step(f, compaction);
    took = clock_monotonic() - began;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(report.passed, 2);
    held = writer->released - began;
    return report.work_us < held / 2 && report.cost_us < took - held / 2;
}

static void the_wait_for_another_writer_is_no_work(void **state)
{
    struct fixture *f = *state;
    struct schema_options schema = {
        .names = &f->names, .partitions = PARTITIONS, .create = true};
    struct db *in_memory = f->db;
    struct temp_database file;
    struct compaction compaction;
    struct writer writer;
    bool told = false;

    temp_database_open(&file);
    f->db = file.db;
    writer.db = temp_database_connect(&file, false);
    check_ok(f, schema_prepare(f->db, &schema, &f->diag));
    for (int i = 1; i <= 60; i++)
        put(f, i, "a");
    compaction = find(f);
    for (int i = 0; i < 30 && !told; i++)
        told = is_told_without_the_wait(f, &writer, &compaction);
    assert_true(told);
    compaction_free(&compaction);
    db_close(writer.db);
    f->db = in_memory;
    temp_database_close(&file);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_deletes_what_its_messages_supersede),
        TEST(of_two_hosts_that_begin_a_topic_one_goes_on),
        TEST(of_two_hosts_that_go_on_one_does_and_progress_never_falls),
        TEST(the_wait_for_another_writer_is_no_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
