/*
 * Topic fixture -- a database in memory with the schema, an event store with
 * one aggregate type in a table of its own, and short ways to write events.
 */
#ifndef SPEC_UNIT_TOPIC_FIXTURE_H
#define SPEC_UNIT_TOPIC_FIXTURE_H

#include "schema/schema.h"
#include "topic/append.h"
#include "topic/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PARTITIONS    12
#define PAYLOAD_LIMIT 1000
#define NOW           INT64_C(1709200800000001)
#define OWN_TYPE      "shop.Order"
#define OWN_TABLE     "SHOP_ORDER_EVENTS"

struct fixture {
    struct names names;
    struct db *db;
    struct catalog *catalog;
    struct event_store *store;
    struct uuid_source ids;
    struct diag diag;
};

static inline void check_ok(const struct fixture *f, enum status status)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_word(status), f->diag.message);
}

static inline int fixture_open(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct db_options options = {.url = "sqlite::memory:", .create = true};
    struct schema_options schema = {.partitions = PARTITIONS, .create = true};

    assert_non_null(f);
    names_default(&f->names);
    check_ok(f,
             names_aggregate(&f->names, OWN_TYPE, OWN_TABLE, NULL, &f->diag));
    check_ok(f, db_open(&options, &f->db, &f->diag));
    check_ok(f, catalog_open(db_dialect(f->db), f->names.fill, &f->catalog,
                             &f->diag));
    schema.names = &f->names;
    check_ok(f, schema_prepare(f->db, &schema, &f->diag));
    check_ok(f, event_store_open(db_dialect(f->db), &f->names, f->catalog,
                                 PARTITIONS, &f->store, &f->diag));
    *state = f;
    return 0;
}

static inline int fixture_close(void **state)
{
    struct fixture *f = *state;

    event_store_close(f->store);
    db_close(f->db);
    catalog_close(f->catalog);
    names_free(&f->names);
    free(f);
    return 0;
}

static inline struct append_event event_of(const char *type, const char *id,
                                           const char *payload)
{
    return (struct append_event){
        .aggregate_type = text_of(type),
        .aggregate_id = text_of(id),
        .type = text_of("happened"),
        .payload = text_of(payload),
    };
}

static inline struct append_event with_id(struct append_event event,
                                          const char *id)
{
    assert_true(uuid_parse(text_of(id), &event.id));
    event.has_id = true;
    return event;
}

/** Appends in a transaction of its own that is committed on success. */
static inline enum status append(struct fixture *f,
                                 const struct append_event *events,
                                 size_t count, struct append_result *results,
                                 size_t *bad)
{
    struct append_options options = {
        .ids = &f->ids, .now_us = NOW, .payload_limit = PAYLOAD_LIMIT};
    enum status status;

    check_ok(f, db_begin(f->db, &f->diag));
    status = append_events(f->store, f->db, &options, events, count, results,
                           bad, &f->diag);
    if (status == STATUS_OK)
        check_ok(f, db_commit(f->db, NULL, &f->diag));
    else
        db_rollback(f->db);
    return status;
}

static inline struct append_result append_one(struct fixture *f,
                                              struct append_event event)
{
    struct append_result result;
    size_t bad;

    check_ok(f, append(f, &event, 1, &result, &bad));
    return result;
}

static inline void expect_message(const struct fixture *f, const char *part)
{
    if (strstr(f->diag.message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, f->diag.message);
}

static inline int64_t integer_of(struct fixture *f, const char *sql)
{
    struct db_sql statement = db_sql_make(text_of(sql), DB_HOST);
    int64_t value = 0;
    bool found = false;

    check_ok(f, db_query_int64(f->db, &statement, NULL, 0, &value, &found,
                               &f->diag));
    assert_true(found);
    return value;
}

static inline void run_sql(struct fixture *f, const char *sql)
{
    check_ok(f, db_script(f->db, text_of(sql), DB_HOST, &f->diag));
}

static inline void assert_text(struct text text, const char *wanted)
{
    assert_non_null(text.data);
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
}

#endif
