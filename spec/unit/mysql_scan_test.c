/* MariaDB's SQL taken apart: parameters, statements, what a script may run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "db/catalog.h"
#include "db/mysql_scan.h"

static const struct catalog_name HOSTS[] = {{"consumers_table", "CONSUMERS"},
                                            {NULL, NULL}};

static void marks(const char *sql, const char *plain, const char *numbers)
{
    struct mysql_marks found = {.numbers = NULL};
    struct buffer out = BUFFER_EMPTY;
    struct buffer list = BUFFER_EMPTY;

    mysql_scan_marks(text_of(sql), &out, &found);
    buffer_append_string(&list, "");
    for (size_t i = 0; i < found.count; i++)
        buffer_printf(&list, "%s%u", i > 0 ? " " : "", found.numbers[i]);
    assert_string_equal(out.data, plain);
    assert_string_equal(list.data, numbers);
    mem_free(found.numbers);
    buffer_free(&out);
    buffer_free(&list);
}

static void a_number_may_be_used_more_than_once(void **state)
{
    (void)state;
    marks("SELECT ?2, ?1, ?2", "SELECT ?, ?, ?", "1 0 1");
    marks("SELECT ?, ?", "SELECT ?, ?", "0 1");
    marks("SELECT ?12", "SELECT ?", "11");
}

static void a_question_mark_elsewhere_is_no_parameter(void **state)
{
    (void)state;
    marks("SELECT '?', \"?\", `?`, ?1", "SELECT '?', \"?\", `?`, ?", "0");
    marks("SELECT 'it''s ?', ?1", "SELECT 'it''s ?', ?", "0");
    marks("SELECT '\\', ?1, '?'", "SELECT '\\', ?, '?'", "0");
    marks("SELECT 1 -- ?\n+ ?1", "SELECT 1 -- ?\n+ ?", "0");
    marks("SELECT 1 # ?\n+ ?1", "SELECT 1 # ?\n+ ?", "0");
    marks("SELECT 1 /* ? */ + ?1", "SELECT 1 /* ? */ + ?", "0");
    marks("SELECT 1--?1", "SELECT 1--?", "0");
    marks("SELECT 'open ?", "SELECT 'open ?", "");
}

static void statements(const char *script, const char *joined)
{
    struct text delimiter = TEXT_NONE;
    struct buffer out = BUFFER_EMPTY;
    struct text sql;
    size_t at = 0;

    buffer_append_string(&out, "");
    while (mysql_scan_statement(text_of(script), &at, &delimiter, &sql))
        buffer_printf(&out, "<" TEXT_FORMAT ">", TEXT_ARGS(sql));
    assert_string_equal(out.data, joined);
    buffer_free(&out);
}

static void a_script_is_taken_statement_by_statement(void **state)
{
    (void)state;
    statements("a; b ;\n-- c;\n;d -- e\n", "<a><b><d -- e>");
    statements("a ';' b; \"x;\" /* ; */ y", "<a ';' b><\"x;\" /* ; */ y>");
    statements(" \n -- nothing\n", "");
}

static void a_delimiter_keeps_the_body_of_a_procedure_together(void **state)
{
    (void)state;
    statements("a;\nDELIMITER //\nbegin b; c; end //\nDELIMITER ;\nd;",
               "<a><begin b; c; end><d>");
}

static void refused(const char *sql, enum db_origin origin, const char *what)
{
    struct diag diag;

    if (mysql_guard(text_of(sql), origin, false, HOSTS, &diag) !=
        STATUS_PERMANENT)
        fail_msg("may be run: %s", sql);
    if (strstr(diag.message, what) == NULL)
        fail_msg("\"%s\" is not in: %s", what, diag.message);
}

static void allowed(const char *sql, enum db_origin origin, bool creates)
{
    struct diag diag;

    if (mysql_guard(text_of(sql), origin, creates, HOSTS, &diag) != STATUS_OK)
        fail_msg("%s: %s", sql, diag.message);
}

static void a_script_may_not_touch_session_transaction_or_tables(void **state)
{
    static const char *const texts[] = {
        "SET",     "BEGIN",   "COMMIT",   "ROLLBACK", "START",    "SAVEPOINT",
        "RELEASE", "CREATE",  "DROP",     "ALTER",    "TRUNCATE", "RENAME",
        "LOCK",    "UNLOCK",  "USE",      "CALL",     "DO",       "PREPARE",
        "EXECUTE", "HANDLER", "LOAD",     "GRANT",    "KILL",     "FLUSH",
        "XA",      "ANALYZE", "OPTIMIZE", "SHUTDOWN", "INSTALL",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        refused(texts[i], DB_SCRIPT, texts[i]);
        refused(texts[i], DB_SCRIPT_READ, texts[i]);
    }
    refused("/* x */ (SET @a = 1)", DB_SCRIPT, "SET");
    refused("SELECT 1 /*!50000 INTO OUTFILE 'x' */", DB_SCRIPT, "/*!");
    refused("SELECT /*M!100000 GET_LOCK('a', 1) */", DB_SCRIPT, "/*M!");
    refused("SELECT @a := 1", DB_SCRIPT, "@");
    refused("SELECT a FROM t INTO @a", DB_SCRIPT, "@");
    refused("SELECT a FROM t INTO OUTFILE 'f'", DB_SCRIPT, "OUTFILE");
    refused("SELECT get_lock('a', 1)", DB_SCRIPT, "get_lock");
    refused("SELECT load_file('a')", DB_SCRIPT, "load_file");
    refused(" -- nothing\n", DB_SCRIPT, "empty");
}

static void a_script_may_read_and_write_rows(void **state)
{
    (void)state;
    allowed("(SELECT a FROM t) UNION SELECT '@'", DB_SCRIPT, false);
    allowed("WITH x AS (SELECT 1) SELECT * FROM x", DB_SCRIPT, false);
    allowed("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", DB_SCRIPT,
            false);
    allowed("update t set a = 1", DB_SCRIPT, false);
    allowed("DELETE FROM t RETURNING a", DB_SCRIPT, false);
    allowed("SELECT a FROM t FOR UPDATE", DB_SCRIPT, false);
}

static void a_statement_that_may_only_read_cannot_write(void **state)
{
    (void)state;
    allowed("SELECT replace(a, 'x', 'y'), insert(a, 1, 1, 'x') FROM t",
            DB_SCRIPT_READ, false);
    refused("INSERT INTO t VALUES (1)", DB_SCRIPT_READ, "may only read");
    refused("UPDATE t SET a = 1", DB_SCRIPT_READ, "may only read");
    refused("DELETE FROM t", DB_SCRIPT_READ, "may only read");
    refused("REPLACE INTO t VALUES (1)", DB_SCRIPT_READ, "may only read");
    refused("WITH x AS (SELECT 1) DELETE FROM t", DB_SCRIPT_READ,
            "may only read");
}

static void a_script_may_read_the_tables_of_the_host(void **state)
{
    (void)state;
    allowed("SELECT * FROM CONSUMERS", DB_SCRIPT, false);
    allowed("INSERT INTO t SELECT id FROM CONSUMERS", DB_SCRIPT, false);
    allowed("INSERT IGNORE t (CONSUMERS) VALUES (1)", DB_SCRIPT, false);
    allowed("UPDATE t SET a = (SELECT max(id) FROM CONSUMERS)", DB_SCRIPT,
            false);
    allowed("DELETE FROM t WHERE a IN (SELECT id FROM CONSUMERS)", DB_SCRIPT,
            false);
    allowed("UPDATE CONSUMERS SET state = NULL", DB_HOST, false);
    allowed("UPDATE CONSUMERS SET state = NULL", DB_PERSON, false);
}

static void a_script_may_not_write_the_tables_of_the_host(void **state)
{
    static const char *const texts[] = {
        "INSERT INTO CONSUMERS VALUES (1)",
        "insert consumers values (1)",
        "INSERT IGNORE INTO \"CONSUMERS\" VALUES (1)",
        "INSERT LOW_PRIORITY INTO `d`.`CONSUMERS` VALUES (1)",
        "INSERT INTO/* c */d . CONSUMERS VALUES (1)",
        "REPLACE DELAYED CONSUMERS VALUES (1)",
        "UPDATE CONSUMERS SET a = 1",
        "UPDATE IGNORE t, d.CONSUMERS AS c SET c.a = 1",
        "UPDATE t JOIN CONSUMERS c USING (a) SET c.a = 1",
        "DELETE FROM CONSUMERS",
        "DELETE c FROM t JOIN CONSUMERS AS c USING (a)",
        "DELETE FROM t, CONSUMERS USING t JOIN CONSUMERS",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        refused(texts[i], DB_SCRIPT, "on a table of the host");
}

static void a_tables_script_creates_tables_and_nothing_else(void **state)
{
    (void)state;
    allowed("CREATE TABLE t (a INT)", DB_SCRIPT, true);
    allowed("CREATE UNIQUE INDEX i ON t (a)", DB_SCRIPT, true);
    allowed("CREATE VIEW v AS SELECT 1", DB_SCRIPT, true);
    allowed("CREATE PROCEDURE p() SELECT 1", DB_HOST, true);
}

static void a_tables_script_may_do_nothing_to_the_server(void **state)
{
    static const char *const texts[] = {
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE DATABASE d",
        "CREATE USER u",
        "CREATE PROCEDURE p() SELECT 1",
        "DROP TABLE t",
        "CREATE OR REPLACE TABLE t (a INT)",
        "SET autocommit = 1",
    };
    struct diag diag;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(
            mysql_guard(text_of(texts[i]), DB_SCRIPT, true, HOSTS, &diag),
            STATUS_PERMANENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_may_be_used_more_than_once),
        cmocka_unit_test(a_question_mark_elsewhere_is_no_parameter),
        cmocka_unit_test(a_script_is_taken_statement_by_statement),
        cmocka_unit_test(a_delimiter_keeps_the_body_of_a_procedure_together),
        cmocka_unit_test(a_script_may_not_touch_session_transaction_or_tables),
        cmocka_unit_test(a_script_may_read_and_write_rows),
        cmocka_unit_test(a_statement_that_may_only_read_cannot_write),
        cmocka_unit_test(a_script_may_read_the_tables_of_the_host),
        cmocka_unit_test(a_script_may_not_write_the_tables_of_the_host),
        cmocka_unit_test(a_tables_script_creates_tables_and_nothing_else),
        cmocka_unit_test(a_tables_script_may_do_nothing_to_the_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
