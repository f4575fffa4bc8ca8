/* The catalog: embedded statements and scripts, and their placeholders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/hash.h"
#include "db/catalog.h"
#include "db/sqlite.h"

#define NAMES_MAX 100

/* Every placeholder of the dialect's files, each with a name of its own. */
struct all_names {
    struct arena arena;
    struct catalog_name names[NAMES_MAX + 1];
    size_t count;
};

static bool has_name(const struct all_names *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->names[i].placeholder, name) == 0)
            return true;
    }
    return false;
}

static void collect(struct all_names *all, struct text text)
{
    const char *at = text.data;
    const char *end;

    if (text.data == NULL) /* this dialect does not need the statement */
        return;
    end = text.data + text.len;
    while ((at = memmem(at, (size_t)(end - at), "${", 2)) != NULL) {
        const char *close = memchr(at, '}', (size_t)(end - at));
        const char *name;
        char value[16];

        assert_non_null(close);
        name = arena_string(&all->arena,
                            (struct text){at + 2, (size_t)(close - at - 2)});
        at = close;
        if (has_name(all, name))
            continue;
        assert_true(all->count < NAMES_MAX);
        snprintf(value, sizeof(value), "table_%zu", all->count);
        all->names[all->count].placeholder = name;
        all->names[all->count].value = arena_string(&all->arena,
                                                    text_of(value));
        all->count++;
    }
}

static void collect_all(struct all_names *all)
{
    const struct catalog_script *scripts;
    size_t count;

    *all = (struct all_names){.arena = ARENA_EMPTY};
    for (int i = 0; i < SQL_COUNT; i++)
        collect(all, catalog_raw("sqlite", (enum sql_statement)i));
    scripts = catalog_scripts("sqlite", &count);
    for (size_t i = 0; i < count; i++)
        collect(all, scripts[i].text);
}

/* A statement that is not for this dialect. */
static bool is_elsewhere(enum sql_statement statement)
{
    return catalog_raw("sqlite", statement).data == NULL;
}

static void every_statement_is_filled_and_ready_to_prepare(void **state)
{
    struct all_names all;
    struct catalog *catalog;
    struct diag diag;

    (void)state;
    collect_all(&all);
    if (catalog_open("sqlite", all.names, &catalog, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    for (int i = 0; i < SQL_COUNT; i++) {
        const struct db_sql *sql;

        if (is_elsewhere((enum sql_statement)i))
            continue;
        sql = catalog_sql(catalog, (enum sql_statement)i);
        assert_true(sql->text.len > 0);
        assert_true(memmem(sql->text.data, sql->text.len, "${", 2) == NULL);
        assert_int_not_equal(memcmp(sql->text.data, "--", 2), 0);
        assert_int_not_equal(sql->text.data[sql->text.len - 1], '\n');
        assert_int_equal(sql->origin, DB_HOST);
        assert_true(sql->hash == hash_fnv1a64(sql->text));
    }
    catalog_close(catalog);
    arena_free(&all.arena);
}

static void apply_scripts(sqlite3 *raw, const struct catalog_name *names)
{
    const struct catalog_script *scripts;
    size_t count;

    scripts = catalog_scripts("sqlite", &count);
    for (size_t i = 0; i < count; i++) {
        struct buffer filled = BUFFER_EMPTY;
        struct diag diag;

        assert_int_equal(catalog_fill(scripts[i].text, names, &filled, &diag),
                         STATUS_OK);
        if (sqlite3_exec(raw, filled.data, NULL, NULL, NULL) != SQLITE_OK)
            fail_msg("%s: %s", scripts[i].name, sqlite3_errmsg(raw));
        buffer_free(&filled);
    }
}

static void every_statement_fits_the_tables_of_the_scripts(void **state)
{
    struct all_names all;
    struct catalog *catalog;
    struct diag diag;
    sqlite3 *raw;

    (void)state;
    collect_all(&all);
    assert_int_equal(sqlite3_open(":memory:", &raw), SQLITE_OK);
    assert_int_equal(sqlite_head_register(raw), SQLITE_OK);
    apply_scripts(raw, all.names);
    assert_int_equal(catalog_open("sqlite", all.names, &catalog, &diag),
                     STATUS_OK);
    for (int i = 0; i < SQL_COUNT; i++) {
        struct text text;
        sqlite3_stmt *handle;

        if (is_elsewhere((enum sql_statement)i))
            continue;
        text = catalog_sql(catalog, (enum sql_statement)i)->text;
        if (sqlite3_prepare_v2(raw, text.data, (int)text.len, &handle, NULL) !=
            SQLITE_OK)
            fail_msg("%s in: %.*s", sqlite3_errmsg(raw), TEXT_ARGS(text));
        sqlite3_finalize(handle);
    }
    catalog_close(catalog);
    sqlite3_close(raw);
    arena_free(&all.arena);
}

static void a_name_that_nothing_uses_is_an_error(void **state)
{
    struct all_names all;
    struct catalog *catalog;
    struct diag diag;

    (void)state;
    collect_all(&all);
    assert_true(all.count < NAMES_MAX);
    all.names[all.count] = (struct catalog_name){"no_such_table", "x"};
    assert_int_equal(catalog_open("sqlite", all.names, &catalog, &diag),
                     STATUS_CONFIG);
    assert_null(catalog);
    assert_non_null(strstr(diag.message, "${no_such_table}"));
    arena_free(&all.arena);
}

static void a_missing_name_is_an_error_that_names_the_file(void **state)
{
    static const struct catalog_name none[] = {{NULL, NULL}};
    struct catalog *catalog;
    struct diag diag;

    (void)state;
    assert_int_equal(catalog_open("sqlite", none, &catalog, &diag),
                     STATUS_CONFIG);
    assert_non_null(strstr(diag.message, "sql/sqlite/statement/"));
    assert_non_null(strstr(diag.message, "unknown placeholder ${"));
}

static void an_unknown_dialect_has_nothing(void **state)
{
    static const struct catalog_name none[] = {{NULL, NULL}};
    struct catalog *catalog;
    struct diag diag;
    size_t count = 9;

    (void)state;
    assert_int_equal(catalog_open("oracle", none, &catalog, &diag),
                     STATUS_CONFIG);
    assert_null(catalog_scripts("oracle", &count));
    assert_int_equal(count, 0);
}

static void scripts_come_in_the_order_of_their_numbers(void **state)
{
    const struct catalog_script *scripts;
    size_t count;

    (void)state;
    scripts = catalog_scripts("sqlite", &count);
    assert_true(count > 0);
    assert_string_equal(scripts[0].name, "schema-version");
    for (size_t i = 0; i < count; i++) {
        assert_true(scripts[i].text.len > 0);
        assert_null(strchr(scripts[i].name, '.'));
    }
}

static const struct catalog_name names[] = {
    {"event_table", "MY_EVENTS"},
    {"t2", "t_2"},
    {"bad", "a; DROP TABLE b"},
    {"digit", "1a"},
    {"empty", ""},
    {"long",
     "a234567890123456789012345678901234567890123456789012345678901234"},
    {NULL, NULL},
};

struct fill {
    const char *text;
    const char *result; /* NULL: CONFIG */
    const char *says;
};

static const struct fill fills[] = {
    {"", "", NULL},
    {"SELECT 1", "SELECT 1", NULL},
    {"${event_table}", "MY_EVENTS", NULL},
    {"a ${t2}.${event_table}_x $ {t2} $1", "a t_2.MY_EVENTS_x $ {t2} $1", NULL},
    {"${nowhere}", NULL, "unknown placeholder ${nowhere}"},
    {"${Event_Table}", NULL, "unknown placeholder ${Event_Table}"},
    {"${}", NULL, "unknown placeholder ${}"},
    {"${t2", NULL, "does not end"},
    {"${", NULL, "does not end"},
    {"${bad}", NULL, "cannot stand for ${bad}"},
    {"${digit}", NULL, "cannot stand for"},
    {"${empty}", NULL, "cannot stand for"},
    {"${long}", NULL, "cannot stand for"},
};

static void a_placeholder_takes_an_identifier_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++) {
        struct buffer out = BUFFER_EMPTY;
        struct diag diag = {0};
        enum status status = catalog_fill(text_of(fills[i].text), names, &out,
                                          &diag);

        if (fills[i].result == NULL) {
            assert_int_equal(status, STATUS_CONFIG);
            if (strstr(diag.message, fills[i].says) == NULL)
                fail_msg("%s: %s", fills[i].text, diag.message);
        } else {
            assert_int_equal(status, STATUS_OK);
            assert_true(
                text_equal(buffer_text(&out), text_of(fills[i].result)));
        }
        buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_statement_is_filled_and_ready_to_prepare),
        cmocka_unit_test(every_statement_fits_the_tables_of_the_scripts),
        cmocka_unit_test(a_name_that_nothing_uses_is_an_error),
        cmocka_unit_test(a_missing_name_is_an_error_that_names_the_file),
        cmocka_unit_test(an_unknown_dialect_has_nothing),
        cmocka_unit_test(scripts_come_in_the_order_of_their_numbers),
        cmocka_unit_test(a_placeholder_takes_an_identifier_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
