/*
 * Ctx: SQL of handlers inside the processing transaction, with the real
 * driver, and what each fault becomes.
 */
#include "script_fixture.h"

#include "model/handler_sql.h"

struct bench {
    struct script_file files[2];
    struct buffer text;
    struct script_fixture f;
    struct db *db;
    struct handler_sql *sql;
    struct message message;
    struct handler_call call;
    struct failure failure;
    struct diag diag;
};

static void database(struct bench *b)
{
    struct db_options options = {.url = "sqlite::memory:", .create = true};

    if (db_open(&options, &b->db, &b->diag) != STATUS_OK ||
        db_script(b->db,
                  TEXT_LITERAL("CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, "
                               "d REAL, b BLOB) STRICT;"),
                  DB_HOST, &b->diag) != STATUS_OK ||
        db_begin(b->db, &b->diag) != STATUS_OK)
        fail_msg("%s", b->diag.message);
    b->sql = handler_sql_new(b->db);
}

/* An sql_projection (or one with state) whose handler has the body. */
static void bench_open(struct bench *b, const char *kind, const char *body)
{
    *b = (struct bench){.failure = {.permanent = false}};
    buffer_printf(&b->text,
                  "local moontide = require 'moontide'\n"
                  "local result, kept\n"
                  "return moontide.%s 'p' { on = { ['a.B'] =\n"
                  "function(%sevent, ctx)\n"
                  "%s\n"
                  "end } }\n",
                  kind, strcmp(kind, "projection") == 0 ? "state, " : "", body);
    b->files[0] = (struct script_file){"handlers/x.lua", b->text.data};
    fixture_open(&b->f, b->files);
    assert_string_equal(b->f.error, "");
    database(b);
    b->message = (struct message){
        .position = 1,
        .key = TEXT_LITERAL("K"),
        .type = TEXT_LITERAL("a.B"),
        .payload = TEXT_LITERAL("{}"),
    };
    b->call = (struct handler_call){
        .declaration = &b->f.set.items[0],
        .message = &b->message,
        .key = TEXT_LITERAL("K"),
        .attempt = 1,
        .sql = b->sql,
    };
    handler_sql_batch_begin(b->sql, strcmp(kind, "projection") != 0);
}

static void bench_close(struct bench *b)
{
    handler_sql_free(b->sql);
    db_close(b->db);
    fixture_close(&b->f, b->files);
    buffer_free(&b->text);
}

/* One call, then everything it queued goes out. */
static enum status apply(struct bench *b)
{
    enum status status;

    handler_sql_call_begin(b->sql);
    status = handler_call_ops.apply(b->f.code, &b->call, &b->failure, &b->diag);
    if (status == STATUS_OK)
        status = handler_sql_send(b->sql, &b->diag);
    if (status == STATUS_OK)
        status = db_flush(b->db, NULL, &b->diag);
    return status;
}

/* Runs the body; what table t then holds, as "k n|k n|". */
static void expect_rows(const char *body, const char *wanted)
{
    struct bench b;
    struct buffer rows = BUFFER_EMPTY;
    struct db_sql sql = db_sql_make(
        TEXT_LITERAL("SELECT k, n FROM t ORDER BY k"), DB_HOST);
    struct db_rows *result;
    bool more;

    bench_open(&b, "sql_projection", body);
    if (apply(&b) != STATUS_OK)
        fail_msg("%s / %s", b.failure.reason, b.diag.message);
    assert_int_equal(db_query(b.db, &sql, NULL, 0, &result, &b.diag),
                     STATUS_OK);
    while (db_next(result, &more, &b.diag) == STATUS_OK && more)
        buffer_printf(&rows, TEXT_FORMAT " %lld|",
                      TEXT_ARGS(db_get_text(result, 0)),
                      (long long)db_get_int64(result, 1));
    db_rows_close(result);
    assert_string_equal(buffer_text(&rows).data, wanted);
    buffer_free(&rows);
    bench_close(&b);
}

/* The reason starts with `wanted`; the driver may say more behind it. */
static void expect_failure(const char *body, const char *wanted)
{
    struct bench b;

    bench_open(&b, "sql_projection", body);
    assert_int_equal(apply(&b), STATUS_FAILED);
    if (strncmp(b.failure.reason, wanted, strlen(wanted)) != 0)
        assert_string_equal(b.failure.reason, wanted);
    bench_close(&b);
}

/* The body sets `result`, which must be the wanted text. */
static void expect_result(const char *body, const char *wanted)
{
    struct buffer text = BUFFER_EMPTY;
    struct bench b;

    buffer_printf(&text, "%s\nerror(tostring(result), 0)", body);
    bench_open(&b, "sql_projection", text.data);
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_non_null(strstr(b.failure.reason, wanted));
    bench_close(&b);
    buffer_free(&text);
}

static void execute_update_and_upsert_write(void **state)
{
    (void)state;
    expect_rows("ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'a', 1)\n"
                "ctx:execute({ sqlite = 'INSERT INTO t (k, n) VALUES (?, 2)',\n"
                "postgres = 'no' }, 'b')",
                "a 1|b 2|");
    expect_rows("ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'a', 1)\n"
                "local n = ctx:update('UPDATE t SET n = ? WHERE k = ?', 9, "
                "'a')\n"
                "local none = ctx:update('DELETE FROM t WHERE k = ?', 'z')\n"
                "ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'n', n * 10 "
                "+ none)",
                "a 9|n 10|");
    expect_rows("ctx:upsert('t', { k = 'a' }, { n = moontide.add(5) })\n"
                "ctx:upsert('t', { k = 'a' }, { n = moontide.add(2) })\n"
                "ctx:upsert('t', { k = 'b' }, { n = 1 })",
                "a 7|b 1|");
}

static void query_gives_rows_with_exact_values(void **state)
{
    (void)state;
    expect_result("ctx:execute('INSERT INTO t VALUES (?, ?, ?, ?)', 'a',\n"
                  "9007199254740993LL, 1.5, moontide.bytes('\\0\\255'))\n"
                  "ctx:execute('INSERT INTO t (k) VALUES (?)', 'b')\n"
                  "local rows = ctx:query('SELECT k, n, d, b FROM t ORDER BY "
                  "k')\n"
                  "local r = rows[1]\n"
                  "result = table.concat({ #rows, r.k, tostring(r.n), r.d,\n"
                  "r.b == '\\0\\255' and 'same' or 'other',\n"
                  "rows[2].n == nil and 'nil' or 'value' }, ' ')",
                  "2 a 9007199254740993LL 1.5 same nil");
    expect_result("result = moontide.json.encode(ctx:query('SELECT 1 WHERE 1 = "
                  "0'))",
                  "[]");
    expect_result("local r = ctx:query('SELECT ? AS a, ? AS b, ? AS c, ? AS "
                  "d', nil, true, moontide.null, nil)[1]\n"
                  "result = tostring(r.a) .. tostring(r.b) .. tostring(r.c)",
                  "nil1nil");
}

static void a_question_mark_in_text_is_no_parameter(void **state)
{
    (void)state;
    expect_result("result = ctx:query(\"SELECT '?' || ? AS v\", 'x')[1].v",
                  "?x");
}

static void wrong_use_names_the_line(void **state)
{
    (void)state;
    expect_failure("ctx:execute('INSERT INTO t (k) VALUES (?)')",
                   "error: handlers/x.lua:5: ctx:execute: the statement has 1 "
                   "placeholders, but 0 values were given");
    expect_failure("ctx:query('SELECT ?', {})",
                   "error: handlers/x.lua:5: ctx:query: parameter 1 is a "
                   "table; SQL takes nil, booleans, numbers, strings and "
                   "moontide.bytes()");
    expect_failure("ctx:query('SELECT ?', 0/0)",
                   "error: handlers/x.lua:5: ctx:query: parameter 1 is NaN, "
                   "which SQL does not know");
    expect_failure("ctx:query('SELECT ?', 'a\\0')",
                   "error: handlers/x.lua:5: ctx:query: parameter 1 is a "
                   "string with NUL or invalid UTF-8; wrap binary data in "
                   "moontide.bytes()");
    expect_failure("ctx:query({ postgres = 'SELECT 1' })",
                   "error: handlers/x.lua:5: ctx:query: the table has no text "
                   "for sqlite");
    expect_failure("ctx:query(5)",
                   "error: handlers/x.lua:5: ctx:query takes SQL first, a "
                   "string or a table by dialect, not a number");
    expect_failure("ctx.query('SELECT 1')",
                   "error: handlers/x.lua:5: call it with a colon: "
                   "ctx:query(...)");
    expect_failure("ctx:upsert('t', { k = moontide.add(1) }, { n = 1 })",
                   "error: handlers/x.lua:5: ctx:upsert: the key k cannot be "
                   "a moontide.add");
    expect_failure("ctx:upsert('t', { k = 'a' }, { [1] = 1 })",
                   "error: handlers/x.lua:5: ctx:upsert: values: a column's "
                   "name is a string, not a number");
    expect_failure("ctx:upsert('t', {}, { n = 1 })",
                   "error: handlers/x.lua:5: an upsert needs at least one "
                   "key column");
}

static void a_failed_statement_fails_the_call_even_inside_pcall(void **state)
{
    (void)state;
    expect_failure("pcall(function()\n"
                   "ctx:update('UPDATE nowhere SET n = 1') end)",
                   "sql: handlers/x.lua:6: no such table: nowhere");
    expect_failure("ctx:execute('INSERT INTO t (k) VALUES (?)', 'a')\n"
                   "ctx:execute('INSERT INTO t (k) VALUES (?)', 'a')\n"
                   "pcall(ctx.query, ctx, 'SELECT 1')",
                   "unique: handlers/x.lua:6: UNIQUE constraint failed: t.k");
}

static void try_rescues_what_it_wraps(void **state)
{
    (void)state;
    expect_rows("ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'a', 1)\n"
                "local good, why = ctx:try(function()\n"
                "  ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'b', 2)\n"
                "  ctx:update('UPDATE nowhere SET n = 1')\n"
                "end)\n"
                "assert(good == false and why:find('nowhere', 1, true))\n"
                "ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'c', 3)",
                "a 1|c 3|");
    expect_rows("local good, x, y = ctx:try(function()\n"
                "  ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'b', 2)\n"
                "  return 4, 5\n"
                "end)\n"
                "assert(good == true)\n"
                "ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'c', x * y)",
                "b 2|c 20|");
    expect_rows("assert(not ctx:try(function()\n"
                "  ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'b', 2)\n"
                "  error('no')\n"
                "end))",
                "");
}

static void try_takes_a_failure_of_what_was_queued(void **state)
{
    (void)state;
    expect_rows("ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'a', 1)\n"
                "local good, why = ctx:try(function()\n"
                "  ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'a', 2)\n"
                "end)\n"
                "assert(good == false and why:find('UNIQUE', 1, true))",
                "a 1|");
}

static void tries_nest(void **state)
{
    (void)state;
    expect_rows("assert(ctx:try(function()\n"
                "  ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'a', 1)\n"
                "  assert(not ctx:try(function()\n"
                "    ctx:execute('INSERT INTO t (k, n) VALUES (?, ?)', 'b', "
                "2)\n"
                "    ctx:update('UPDATE nowhere SET n = 1')\n"
                "  end))\n"
                "end))",
                "a 1|");
}

static void a_projection_with_state_may_only_query(void **state)
{
    struct bench b;
    enum handler_outcome outcome;

    (void)state;
    bench_open(&b, "projection",
               "state.n = ctx:query('SELECT 7 AS n')[1].n\n"
               "ctx:execute('DELETE FROM t')");
    handler_sql_call_begin(b.sql);
    assert_int_equal(
        handler_call_ops.state_initial(b.f.code, &b.call, 0, &b.failure),
        STATUS_OK);
    assert_int_equal(handler_call_ops.apply_state(
                         b.f.code, &b.call, 0, &outcome, &b.failure, &b.diag),
                     STATUS_FAILED);
    assert_string_equal(b.failure.reason,
                        "error: handlers/x.lua:6: ctx:execute is not available "
                        "in a projection with state, which may only query; use "
                        "moontide.sql_projection");
    bench_close(&b);
}

/* A projection "p", whose query table is p, queries `sql`. */
static void expect_own_table(const char *sql, bool refused)
{
    struct bench b;
    enum handler_outcome outcome;
    char body[256];
    enum status status;

    snprintf(body, sizeof(body), "state.n = #ctx:query([==[%s]==])", sql);
    bench_open(&b, "projection", body);
    assert_int_equal(db_script(b.db,
                               TEXT_LITERAL("CREATE TABLE p (p_1 INTEGER);"),
                               DB_HOST, &b.diag),
                     STATUS_OK);
    handler_sql_call_begin(b.sql);
    assert_int_equal(
        handler_call_ops.state_initial(b.f.code, &b.call, 0, &b.failure),
        STATUS_OK);
    status = handler_call_ops.apply_state(b.f.code, &b.call, 0, &outcome,
                                          &b.failure, &b.diag);
    if (status == STATUS_OK && refused)
        fail_msg("accepted: %s", sql);
    if (status != STATUS_OK && !refused)
        fail_msg("%s: %s", sql, b.failure.reason);
    if (refused)
        assert_string_equal(
            b.failure.reason,
            "error: handlers/x.lua:5: ctx:query: a projection cannot query its "
            "own table: what its handlers changed in this batch is not there "
            "yet");
    bench_close(&b);
}

static void a_projection_cannot_query_its_own_table(void **state)
{
    (void)state;
    expect_own_table("SELECT * FROM p", true);
    expect_own_table("SELECT * FROM P WHERE 1 = 1", true);
    expect_own_table("SELECT * FROM \"p\"", true);
    expect_own_table("SELECT * FROM `P`", true);
    expect_own_table("SELECT * FROM [p]", true);
    expect_own_table("SELECT * FROM main.p", true);
    expect_own_table("SELECT 1 FROM t JOIN p", true);
    expect_own_table("SELECT 'it''s' FROM/**/p", true);
    expect_own_table("SELECT 1 -- here\nFROM p", true);
    expect_own_table("SELECT k FROM t WHERE k = 'p'", false);
    expect_own_table("SELECT k FROM t -- p", false);
    expect_own_table("SELECT k /* p */ FROM t", false);
    expect_own_table("SELECT k AS p_1, k AS xp, k AS \"a p\" FROM t", false);
}

static void raising_while_rows_are_read_leaves_no_result_open(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "sql_projection",
               "ctx:query([[WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT "
               "i + 1 FROM c WHERE i < 10000000) SELECT i, "
               "'a text that takes some room' || i AS s FROM c]])");
    /* little, so that memory ends long before the time does */
    b.f.state->limits.memory = b.f.state->limits.used + (8 << 20);
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_non_null(strstr(b.failure.reason, "limits.memory"));
    /* the connection is free for the next statement */
    handler_sql_call_begin(b.sql);
    assert_int_equal(
        db_script(b.db, TEXT_LITERAL("DROP TABLE t;"), DB_HOST, &b.diag),
        STATUS_OK);
    bench_close(&b);
}

static void log_lines_name_the_message(void **state)
{
    struct bench b;
    char line[1024] = "";
    FILE *out = tmpfile();

    (void)state;
    bench_open(&b, "sql_projection",
               "ctx.log.info('moved', { b = 2, a = 'x y', c = { 1 } })\n"
               "ctx.log.debug('hidden')");
    b.f.log = (struct log){.out = out, .level = LOG_INFO, .format = LOG_LOGFMT};
    assert_int_equal(apply(&b), STATUS_OK);
    rewind(out);
    assert_non_null(fgets(line, sizeof(line), out));
    assert_non_null(strstr(line, "moved"));
    assert_non_null(strstr(line, "a=\"x y\" b=2 c=[1]"));
    assert_null(fgets(line, sizeof(line), out));
    fclose(out);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(execute_update_and_upsert_write),
        cmocka_unit_test(query_gives_rows_with_exact_values),
        cmocka_unit_test(a_question_mark_in_text_is_no_parameter),
        cmocka_unit_test(wrong_use_names_the_line),
        cmocka_unit_test(a_failed_statement_fails_the_call_even_inside_pcall),
        cmocka_unit_test(try_rescues_what_it_wraps),
        cmocka_unit_test(try_takes_a_failure_of_what_was_queued),
        cmocka_unit_test(tries_nest),
        cmocka_unit_test(a_projection_with_state_may_only_query),
        cmocka_unit_test(a_projection_cannot_query_its_own_table),
        cmocka_unit_test(raising_while_rows_are_read_leaves_no_result_open),
        cmocka_unit_test(log_lines_name_the_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
