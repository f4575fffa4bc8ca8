/*
 * Support for the mark_*_test.c files: a database of its own for each test on
 * PostgreSQL, since the mark looks at everybody in it, and the steps of writers
 * and of the detector.
 */
#ifndef SPEC_UNIT_MARK_SUPPORT_H
#define SPEC_UNIT_MARK_SUPPORT_H

#include "db_support.h"

#include "base/clock.h"
#include "schema/schema.h"
#include "topic/append.h"
#include "topic/high_water_mark.h"
#include "topic/message.h"

#include <pthread.h>

struct world {
    struct fixture f; /* the detector's connection */
    char name[48];
    struct names names;
    struct catalog *catalog;
    struct mark_detector detector;
    struct high_water_mark mark;
};

static inline void server_execute(struct world *w, const char *text)
{
    struct db_options options = {.url = server_url("POSTGRES_URL"),
                                 .busy_timeout = FIXTURE_PATIENT};
    struct db_sql sql = sql_of(text);
    struct db *db;

    if (db_open(&options, &db, &w->f.diag) != STATUS_OK ||
        db_execute(db, &sql, NULL, 0, NULL, &w->f.diag) != STATUS_OK)
        fail_msg("%s", w->f.diag.message);
    db_close(db);
}

/* The server's URL with another database in its path. */
static inline void set_url(struct world *w)
{
    const char *url = server_url("POSTGRES_URL");
    const char *host = strstr(url, "://") + 3;
    size_t front = (size_t)(host - url) + strcspn(host, "/?");
    const char *query = strchr(url, '?');

    snprintf(w->f.url, sizeof(w->f.url), "%.*s/%s%s", (int)front, url, w->name,
             query != NULL ? query : "");
}

static inline int world_setup(void **state)
{
    static int count;
    struct world *w = calloc(1, sizeof(*w));
    struct schema_options schema = {.partitions = 12, .create = true};
    char text[128];

    snprintf(w->name, sizeof(w->name), "moontide_mark_%d_%d", getpid(),
             count++);
    snprintf(text, sizeof(text), "CREATE DATABASE %s", w->name);
    server_execute(w, text);
    set_url(w);
    w->f.db = fixture_connect(&w->f);
    names_default(&w->names);
    schema.names = &w->names;
    ok(&w->f, schema_prepare(w->f.db, &schema, &w->f.diag));
    ok(&w->f, catalog_open(db_dialect(w->f.db), w->names.fill, &w->catalog,
                           &w->f.diag));
    *state = w;
    return 0;
}

static inline int world_teardown(void **state)
{
    struct world *w = *state;
    char text[128];

    catalog_close(w->catalog);
    names_free(&w->names);
    db_close(w->f.db);
    snprintf(text, sizeof(text), "DROP DATABASE %s WITH (FORCE)", w->name);
    server_execute(w, text);
    free(w);
    return 0;
}

static inline int64_t detect(struct world *w)
{
    w->detector.asked_at = 0; /* the pause between looks is not waited for */
    ok(&w->f, high_water_mark_detect(w->f.db, w->catalog, TOPIC_EVENT_STORE,
                                     &w->detector, &w->mark, &w->f.diag));
    return w->mark.mark;
}

/* Draws positions as an append does, in its open transaction; the first. */
static inline int64_t draw(struct world *w, struct db *writer, int64_t count)
{
    struct db_value param = db_integer(count);
    struct db_rows *rows;
    int64_t first;
    bool more;

    if (!db_in_transaction(writer))
        ok(&w->f, db_begin(writer, &w->f.diag));
    ok(&w->f, db_query(writer, catalog_sql(w->catalog, SQL_APPEND_POSITIONS),
                       &param, 1, &rows, &w->f.diag));
    ok(&w->f, db_next(rows, &more, &w->f.diag));
    assert_true(more);
    first = db_get_int64(rows, 0);
    db_rows_close(rows);
    return first;
}

static inline void end(struct world *w, struct db *writer, bool commit_it)
{
    if (commit_it)
        ok(&w->f, db_commit(writer, NULL, &w->f.diag));
    else
        db_rollback(writer);
}

struct thread {
    struct world *w;
    struct db *db;
    struct mark_detector detector;
    struct high_water_mark mark;
    struct diag diag;
    enum status status;
    bool done;
};

static inline void *detect_aside(void *arg)
{
    struct thread *t = arg;

    t->status = high_water_mark_detect(t->db, t->w->catalog, TOPIC_EVENT_STORE,
                                       &t->detector, &t->mark, &t->diag);
    return NULL;
}

static inline bool is_waiting(struct world *w)
{
    return number(&w->f, "SELECT count(*) FROM pg_stat_activity"
                         " WHERE datname = current_database()"
                         " AND wait_event_type = 'Lock'") > 0;
}

/* Bound of what must come about; a thread waits for the locks as long. */
static inline void until(struct world *w, bool (*holds)(struct world *w),
                         const char *what)
{
    int64_t end = clock_monotonic() + FIXTURE_PATIENT;

    while (!holds(w)) {
        if (clock_monotonic() >= end)
            fail_msg("waited in vain until %s", what);
    }
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

#endif
