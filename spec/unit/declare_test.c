/*
 * Declare: what a declaration becomes, and that each fault of one is an error
 * with its file and line.
 */
#include "script_fixture.h"

static const struct script_file NO_FILES[] = {{NULL, NULL}};

/* What is said of a projection "p" with the given members. */
static void expect_refused(const char *members, const char *wanted)
{
    fixture_expect_refused("local moontide = require 'moontide'\n"
                           "local t = moontide.types\n"
                           "return moontide.projection 'p' { ",
                           members, " }\n", "3: ", wanted);
}

#define ON "on = { ['a.B'] = function() end }"

static void a_projection_is_copied_whole(void **state)
{
    static const struct script_file files[] = {
        {"handlers/x.lua",
         "local moontide = require 'moontide'\n"
         "local t = moontide.types\n"
         "return {\n"
         "  moontide.projection 'account-summary' {\n"
         "    source = 'event-store', aggregates = { 'bank.account' },\n"
         "    revision = 3, key = function(e) return e.key end,\n"
         "    initial = function() return {} end,\n"
         "    fields = { iban = t.text { unique = true, optional = true },\n"
         "               fee = t.decimal(12, 2), kind = t.enum { 'a', 'b' },\n"
         "               balance = t.integer() },\n"
         "    on = { ['b.Two'] = print, ['a.One'] = print } },\n"
         "  { moontide.sql_projection 'turnover' { tables = 'tables.sql',\n"
         "    reset = function() end, " ON " } },\n"
         "}\n"},
        {NULL, NULL},
    };
    struct script_fixture f;
    const struct declaration *d;

    (void)state;
    fixture_open(&f, files);
    assert_string_equal(f.error, "");
    assert_int_equal(f.set.count, 2);
    d = &f.set.items[0];
    assert_int_equal(d->kind, DECLARATION_PROJECTION);
    assert_string_equal(d->name, "account-summary");
    assert_string_equal(d->file, "handlers/x.lua");
    assert_int_equal(d->line, 4);
    assert_string_equal(d->source, "event-store");
    assert_int_equal(d->revision, 3);
    assert_int_equal(d->ntypes, 2);
    assert_true(text_equal(d->types[0], TEXT_LITERAL("a.One")));
    assert_int_equal(d->naggregates, 1);
    assert_true(d->own_key);
    assert_string_equal(d->table, "account_summary");
    assert_int_equal(d->nfields, 4);
    assert_string_equal(d->fields[0].name, "balance");
    assert_int_equal(d->fields[0].type, FIELD_INTEGER);
    assert_int_equal(d->fields[1].precision, 12);
    assert_int_equal(d->fields[1].scale, 2);
    assert_true(d->fields[2].unique && d->fields[2].optional);
    assert_string_equal(d->fields[3].values[1], "b");
    assert_null(d->fields[3].values[2]);
    d = &f.set.items[1];
    assert_int_equal(d->kind, DECLARATION_SQL_PROJECTION);
    assert_int_equal(d->index, 1);
    assert_true(d->resettable);
    assert_false(d->own_key);
    assert_string_equal(d->tables_file, "tables.sql");
    assert_true(text_equal(d->tables_sql,
                           TEXT_LITERAL("CREATE TABLE t (a INTEGER);\n")));
    fixture_close(&f, files);
}

static void nothing_to_declare_is_no_fault(void **state)
{
    struct script_fixture f;

    (void)state;
    fixture_open(&f, NO_FILES);
    assert_string_equal(f.error, "");
    assert_int_equal(f.set.count, 0);
    assert_null(f.set.warnings[0]);
    fixture_close(&f, NO_FILES);
}

static void names_that_databases_keep_are_refused(void **state)
{
    (void)state;
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "return moontide.projection 'sqlite_stats' { " ON " }\n",
        "handlers/x.lua:2: projection \"sqlite_stats\": projection "
        "\"sqlite_stats\"; set `table`: table name \"sqlite_stats\" "
        "begins with sqlite_, which databases keep for themselves: "
        "choose another name");
    expect_refused(ON ", table = 'PG_x'",
                   "projection \"p\": table \"PG_x\" begins with pg_, which "
                   "databases keep for themselves: choose another name");
    fixture_expect_error("local moontide = require 'moontide'\n"
                         "return moontide.sql_projection 'sqlite_stats' { " ON
                         " }\n",
                         "");
}

static void a_control_character_in_a_name_is_named(void **state)
{
    (void)state;
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "return moontide.projection 'a\\nb' { " ON " }\n",
        "handlers/x.lua:2: moontide.projection \"a?b\": the name has "
        "a control character, byte 10");
}

static void a_query_table_has_room_for_a_thousand_fields(void **state)
{
    static const char text[] =
        "local moontide = require 'moontide'\n"
        "local fields = {}\n"
        "for i = 1, %d do fields['f' .. i] = moontide.types.integer() end\n"
        "return moontide.projection 'p' { fields = fields, " ON " }\n";
    char script[512];

    (void)state;
    snprintf(script, sizeof(script), text, 1000);
    fixture_expect_error(script, "");
    snprintf(script, sizeof(script), text, 1001);
    fixture_expect_error(script,
                         "handlers/x.lua:4: projection \"p\": has 1001 fields, "
                         "and a query table takes 1000");
}

static void every_wrong_member_is_named(void **state)
{
    (void)state;
    expect_refused("", "projection \"p\": no handlers: on = { [\"some.Type\"] "
                       "= function ... } is missing");
    expect_refused("on = {}", "projection \"p\": no handlers: on is empty");
    expect_refused("on = 3", "projection \"p\": on is a number; it must be a "
                             "table of event types and functions");
    expect_refused("on = { ['a.B'] = 'x' }",
                   "projection \"p\": on[\"a.B\"] is \"x\"; a handler is a "
                   "function");
    expect_refused("on = { print }", "projection \"p\": on[1]: an event type "
                                     "is UTF-8 text of 1 to 255 characters");
    expect_refused(ON ", inital = print",
                   "projection \"p\": unknown key inital; did you mean "
                   "\"initial\"?");
    expect_refused(ON ", 7", "projection \"p\": unknown key [1]; known are "
                             "source, aggregates, key, on, "
                             "on_missing_history, retry, on_error, "
                             "distribution, revision, on_change, fields, "
                             "initial, table, topic, changes");
    expect_refused(ON ", on_change = 'rebuilt'",
                   "projection \"p\": on_change is \"rebuilt\"; it is "
                   "\"rebuild\" or left out: then a changed declaration halts "
                   "the projection");
    expect_refused(ON ", retry = 3",
                   "projection \"p\": retry is a number; it must be a table "
                   "like { attempts = 5, delay = \"1s\" }");
    expect_refused(ON ", retry = { attempt = 3 }",
                   "projection \"p\": retry: unknown key attempt; did you mean "
                   "\"attempts\"?");
    expect_refused(ON ", retry = { attempts = 0 }",
                   "projection \"p\": retry.attempts is 0; it must be a whole "
                   "number from 1 to 1000000");
    expect_refused(ON ", retry = { delay = 'soon' }",
                   "projection \"p\": retry.delay is \"soon\"; it must be a "
                   "duration: seconds, or text like \"250ms\", up to 365 days");
    expect_refused(ON ", on_error = 'dead_leter'",
                   "projection \"p\": on_error is \"dead_leter\" (did you mean "
                   "\"dead_letter\"?); it must be a function or one of halt, "
                   "dead_letter_key, dead_letter, skip");
    expect_refused(ON ", source = 'read-model:orders'",
                   "projection \"p\": on: the topic \"read-model:orders\" has "
                   "no messages of type \"a.B\"; they are "
                   "\"read-model.Changed\" and \"read-model.Deleted\"");
    expect_refused(ON ", source = 'event-captured'",
                   "projection \"p\": source is \"event-captured\" (did you "
                   "mean \"event-capture\"?); it must be a topic: "
                   "\"event-store\" (the default), \"event-capture\" or "
                   "\"read-model:\" and a projection's name");
    expect_refused(ON ", source = { 'event-store' }",
                   "projection \"p\": source is a list, and lists are not "
                   "available in this version; name one topic");
    expect_refused(
        "source = 'read-model:p', on = { ['read-model.Chnaged'] = "
        "function() end }",
        "projection \"p\": on: the topic \"read-model:p\" has no messages of "
        "type \"read-model.Chnaged\" (did you mean \"read-model.Changed\"?); "
        "they are \"read-model.Changed\" and \"read-model.Deleted\"");
    expect_refused(
        "source = 'read-model:p', on = { ['read-model.Changed'] = "
        "function() end }",
        "projection \"p\": reads its own read models: a change would never "
        "come to an end");
    expect_refused(ON ", topic = 'yes'",
                   "projection \"p\": topic is \"yes\"; it is true (its read "
                   "models go to a topic though nothing declared reads it) or "
                   "left out");
    expect_refused(ON ", changes = 'each'",
                   "projection \"p\": changes is \"each\"; it is \"every\" "
                   "(the topic gets the state after each event) or \"last\" "
                   "(of a batch)");
    expect_refused(ON ", source = 'event-capture', aggregates = { 'a' }",
                   "projection \"p\": aggregates: the topic "
                   "\"event-capture\" has none; leave it out");
    expect_refused(ON ", key = 'id'",
                   "projection \"p\": key is \"id\"; it must be a function");
    expect_refused(ON ", initial = {}",
                   "projection \"p\": initial is a table; it must be a "
                   "function");
    expect_refused(ON ", aggregates = {}", "projection \"p\": aggregates is "
                                           "empty; leave it out to take all");
    expect_refused(ON ", aggregates = { 'a', 'a' }",
                   "projection \"p\": aggregates has \"a\" twice");
    expect_refused(ON ", aggregates = { 1 }",
                   "projection \"p\": aggregates[1] is a number; it must be "
                   "UTF-8 text of 1 to 255 characters");
    expect_refused(ON ", revision = 0",
                   "projection \"p\": revision is 0; it must be a whole number "
                   "from 1 to 2147483647");
    expect_refused(ON ", table = 'a b'",
                   "projection \"p\": table is \"a b\"; it must be a table's "
                   "name (letters, digits and _, not first a digit, at most "
                   "63)");
}

static void every_wrong_field_is_named(void **state)
{
    (void)state;
    expect_refused(ON ", fields = { a = t.text }",
                   "projection \"p\": fields.a is a function, not a type of "
                   "moontide.types; call the type, as in t.text()");
    expect_refused(ON ", fields = { a = 'text' }",
                   "projection \"p\": fields.a is \"text\", not a type of "
                   "moontide.types");
    expect_refused(ON ", fields = { a = t.list(t.text()) }",
                   "projection \"p\": fields.a: a list cannot be a column; "
                   "keep it in the state without declaring it");
    expect_refused(ON ", fields = { State = t.text() }",
                   "projection \"p\": fields.State: every query table has a "
                   "column of that name already");
    expect_refused(ON ", fields = { key = t.text() }",
                   "projection \"p\": fields.key: key is what `moontide read` "
                   "calls the read model's own key; take another name");
    expect_refused(ON ", fields = { ['a-b'] = t.text() }",
                   "projection \"p\": fields: \"a-b\" is no column name "
                   "(letters, digits and _, not first a digit, at most 63)");
    expect_refused(ON ", fields = { Name = t.text(), name = t.text() }",
                   "projection \"p\": fields.Name and fields.name are one "
                   "column to a database");
    expect_refused(ON ", fields = { a = t.text { uniqe = true } }",
                   "t.text has no option uniqe; did you mean \"unique\"?");
    expect_refused(ON ", fields = { a = t.text { unique = 1 } }",
                   "option unique of t.text is true or false, not a number");
    expect_refused(ON ", fields = { a = t.decimal() }",
                   "t.decimal(precision, scale): precision is a whole number "
                   "from 1 to 65");
    expect_refused(ON ", fields = { a = t.decimal(4, 5) }",
                   "t.decimal(precision, scale): scale is a whole number from "
                   "0 to 4");
    expect_refused(ON ", fields = { a = t.enum {} }",
                   "t.enum takes a list of words, as in t.enum { \"open\", "
                   "\"closed\" }");
    expect_refused(ON ", fields = { a = t.enum { 'x', 'x' } }",
                   "t.enum: \"x\" is there twice");
}

#define ELSEWHERE                                                              \
    "a module for require belongs into a folder below, such as "               \
    "handlers/lib/x.lua"

static void a_file_must_return_its_declarations(void **state)
{
    (void)state;
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "moontide.projection 'p' { " ON " }\n"
        "return {}\n",
        "handlers/x.lua:2: projection \"p\": is made here but not "
        "returned from the file; add it to what the file returns");
    fixture_expect_error(
        "return {}\n", "handlers/x.lua:1: returns no declaration; " ELSEWHERE);
    fixture_expect_error("local moontide = require 'moontide'\n"
                         "local a = moontide.projection 'a' { " ON " }\n"
                         "local b = moontide.projection 'b' { " ON " }\n"
                         "return a, b\n",
                         "handlers/x.lua:1: returns several values; put the "
                         "declarations into one list");
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "local a = moontide.projection 'a' { " ON " }\n"
        "moontide.projection 'b' { " ON " }\n"
        "return a\n",
        "handlers/x.lua:3: projection \"b\": is made here but not "
        "returned from the file; add it to what the file returns");
    fixture_expect_error(
        "return nil\n",
        "handlers/x.lua:1: returns nothing, and a file of the "
        "scripts folder returns its declaration or a list of them; " ELSEWHERE);
    fixture_expect_error("return 5\n",
                         "handlers/x.lua:1: what it returns is a number, "
                         "not a declaration; " ELSEWHERE);
    fixture_expect_error(
        "return { require('moontide').projection 'p' }\n",
        "handlers/x.lua:1: moontide.projection \"p\" has no table "
        "after its name");
    fixture_expect_error(
        "return { x = require('moontide').projection 'p' { " ON " } }\n",
        "handlers/x.lua:1: projection \"p\": is made here but not "
        "returned from the file; add it to what the file returns");
    fixture_expect_error(
        "return { format = function() end }\n",
        "handlers/x.lua:1: what it returns must be a plain list of "
        "declarations; " ELSEWHERE);
}

static void a_name_that_is_not_there_is_an_error_of_its_line(void **state)
{
    (void)state;
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "return moontide.projektion 'p' { " ON " }\n",
        "handlers/x.lua:2: there is no moontide.projektion; did you "
        "mean \"projection\"?");
    fixture_expect_error(
        "local t = require('moontide').types\n"
        "\n"
        "return t.int()\n",
        "handlers/x.lua:3: there is no moontide.types.int; did you "
        "mean \"integer\"?");
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "return moontide.projection {\n"
        "  on = { ['a.B'] = function() end },\n"
        "}\n",
        "handlers/x.lua:3: moontide.projection takes a name of 1 to "
        "255 characters before its table, as in moontide.projection "
        "\"orders\" { ... }");
}

static void what_comes_later_is_an_error_of_its_line(void **state)
{
    (void)state;
    fixture_expect_error(
        "\nreturn require('moontide').route 's' {}\n",
        "handlers/x.lua:2: moontide.route is not available in this "
        "version");
}

/* What is said of a publisher "mail" with the given members. */
static void expect_publisher_refused(const char *members, const char *wanted)
{
    fixture_expect_refused("local moontide = require 'moontide'\n"
                           "return moontide.publisher 'mail' { ",
                           members, " }\n", "2: publisher \"mail\": ", wanted);
}

static void a_publisher_says_where_messages_go(void **state)
{
    static const char *const good[] = {
        "to = 'kafka:payments'",
        "to = 'amqp:carrier'",
        "to = 'nats:orders.paid'",
        "to = 'redis:orders'",
        "to = 'http:https://mail.example/hook'",
        "to = 'https://mail.example/hook?a=b'",
        "to = 'stdout:'",
        "to = function() end",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        expect_publisher_refused(good[i], "");
    expect_publisher_refused("", "to is missing; it says where messages go, as "
                                 "in to = \"kafka:payments\", or is a "
                                 "function");
    expect_publisher_refused("to = 7",
                             "to is a number; it says where messages go, as in "
                             "to = \"kafka:payments\", or is a function");
    expect_publisher_refused("to = 'kafak:payments'",
                             "to = \"kafak:payments\": \"kafak\" is no scheme "
                             "that is known; did you mean \"kafka\", as in "
                             "\"kafka:payments\"?");
    expect_publisher_refused("to = 'kafka:'",
                             "to = \"kafka:\" names no destination; it looks "
                             "like \"kafka:payments\"");
    expect_publisher_refused("to = 'http:mail.example'",
                             "to = \"http:mail.example\": \"mail.example\" is "
                             "no URL; it looks like "
                             "\"http:https://mail.example/hook\"");
    expect_publisher_refused("to = 'stdout:x'",
                             "to = \"stdout:x\": stdout has no destination; "
                             "say \"stdout:\"");
    expect_publisher_refused("to = 'kafka:a', too = 1",
                             "unknown key too; did you mean \"to\"?");
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "return { moontide.publisher 'a' { to = 'stdout:' },\n"
        "  moontide.publisher 'a' { to = 'stdout:' } }\n",
        "handlers/x.lua:3: publisher \"a\": is declared at "
        "handlers/x.lua:2 already; every publisher has a name of its "
        "own");
}

/* What is said of an event type "a.B" with the given members. */
static void expect_type_refused(const char *members, const char *wanted)
{
    fixture_expect_refused("local moontide = require 'moontide'\n"
                           "local t = moontide.types\n"
                           "return moontide.event_type 'a.B' { ",
                           members, " }\n", "3: event_type \"a.B\": ", wanted);
}

static void the_steps_of_an_event_type_have_no_gap(void **state)
{
    (void)state;
    expect_type_refused("", "");
    expect_type_refused("revision = 1", "");
    expect_type_refused("revision = 2, upcast = { [1] = print }", "");
    expect_type_refused("revision = 3, upcast = { [0] = print, [2] = print }",
                        "upcast has a gap: no step leads from revision 1 to 2");
    expect_type_refused("revision = 3, upcast = { [1] = print }",
                        "upcast has a gap: no step leads from revision 2 to 3");
    expect_type_refused("revision = 2",
                        "upcast has a gap: no step leads from revision 1 to 2");
    expect_type_refused("revision = 1, upcast = { [1] = print }",
                        "upcast[1] starts from a revision that is not below "
                        "revision = 1");
    expect_type_refused("upcast = { [0.5] = print }, revision = 1",
                        "upcast[0.5]: a step is named by the revision it "
                        "starts from, a whole number");
}

static void every_wrong_member_of_an_event_type_is_named(void **state)
{
    (void)state;
    expect_type_refused("revison = 1", "unknown key revison; did you mean "
                                       "\"revision\"?");
    expect_type_refused("store = 'typed'",
                        "store is not available in this version");
    expect_type_refused("revision = 1, upcast = { [0] = { renam = {} } }",
                        "upcast[0]: unknown key renam; did you mean "
                        "\"rename\"?");
    expect_type_refused("revision = 1, upcast = { [0] = {} }",
                        "upcast[0] is empty; it takes rename, default and "
                        "remove, or is a function");
    expect_type_refused(
        "revision = 1, upcast = { [0] = { rename = { "
        "b = 'd', c = 'd' } } }",
        "upcast[0].rename calls both \"b\" and \"c\" \"d\", and "
        "one of them would be lost");
    expect_type_refused("into = { 'a.C' }",
                        "into names the types that a step of upcast splits an "
                        "event into, and there is no step");
    expect_type_refused("fields = { a = t.text }",
                        "fields.a is a function, not a type of moontide.types; "
                        "call the type, as in t.text()");
    expect_type_refused("fields = { a = t.text { unique = true } }",
                        "fields.a: only a column can be unique");
}

static void stored_types_are_those_that_lead_to_a_handler(void **state)
{
    static const struct script_file files[] = {
        {"handlers/x.lua",
         "local moontide = require 'moontide'\n"
         "local function type_into(name, ...)\n"
         "  return moontide.event_type(name) { revision = 1, into = { ... },\n"
         "    upcast = { [0] = function() end } }\n"
         "end\n"
         "return { type_into('a.One', 'a.Two'), type_into('a.Two', "
         "'a.Three'),\n"
         "  type_into('a.Round', 'a.Circle'), type_into('a.Circle', "
         "'a.Round'),\n"
         "  moontide.projection 'p' { on = { ['a.Three'] = print } } }\n"},
        {NULL, NULL},
    };
    const struct declaration *d;
    struct script_fixture f;

    (void)state;
    fixture_open(&f, files);
    assert_string_equal(f.error, "");
    assert_int_equal(f.set.event_types.count, 4);
    d = &f.set.items[0];
    assert_int_equal(d->ntypes, 1);
    assert_int_equal(d->nstored, 3);
    assert_true(text_equal(d->stored[0], TEXT_LITERAL("a.Three")));
    assert_true(text_equal(d->stored[1], TEXT_LITERAL("a.One")));
    assert_true(text_equal(d->stored[2], TEXT_LITERAL("a.Two")));
    fixture_close(&f, files);
}

static void names_and_tables_are_used_once(void **state)
{
    (void)state;
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "return { moontide.projection 'a' { " ON " },\n"
        "  moontide.sql_projection 'a' { " ON " } }\n",
        "handlers/x.lua:3: sql_projection \"a\": is declared at "
        "handlers/x.lua:2 already; every projection has a name of "
        "its own");
    fixture_expect_error(
        "local moontide = require 'moontide'\n"
        "return { moontide.projection 'account-summary' { " ON " },\n"
        "  moontide.projection 'Account_Summary' { " ON " } }\n",
        "handlers/x.lua:3: projection \"Account_Summary\": its table "
        "Account_Summary is that of projection \"account-summary\" "
        "(handlers/x.lua:2) already; give one of them another name "
        "or table = \"...\"");
    fixture_expect_error("local moontide = require 'moontide'\n"
                         "return { moontide.projection 'account-summary' { " ON
                         " },\n"
                         "  moontide.projection 'account_summary' { " ON
                         ", table = 'other' } }\n",
                         "");
}

static void a_table_file_must_be_there_for_the_dialect(void **state)
{
    struct script_fixture f;
    static const struct script_file missing[] = {
        {"handlers/x.lua", "return require('moontide').sql_projection 'p' { " ON
                           ", tables = 'sql/none.sql' }"},
        {NULL, NULL},
    };
    static const struct script_file other[] = {
        {"handlers/x.lua", "return require('moontide').sql_projection 'p' { " ON
                           ", tables = { postgres = 'x.sql' } }"},
        {NULL, NULL},
    };
    static const struct script_file chosen[] = {
        {"handlers/x.lua", "return require('moontide').sql_projection 'p' { " ON
                           ", tables = { sqlite = 'tables.sql' } }"},
        {NULL, NULL},
    };

    (void)state;
    fixture_open(&f, missing);
    assert_non_null(strstr(f.error, "handlers/x.lua:1: sql_projection \"p\": "
                                    "tables = \"sql/none.sql\": "));
    fixture_close(&f, missing);
    fixture_open(&f, other);
    assert_string_equal(f.error, "handlers/x.lua:1: sql_projection \"p\": "
                                 "tables has no file for sqlite");
    fixture_close(&f, other);
    fixture_open(&f, chosen);
    assert_string_equal(f.set.items[0].tables_file, "tables.sql");
    fixture_close(&f, chosen);
}

static void assigned_file_locals_are_warned_of(void **state)
{
    static const struct script_file files[] = {
        {"handlers/x.lua", "local moontide = require 'moontide'\n"
                           "local count, cache = 0, {}\n"
                           "return moontide.projection 'p' {\n"
                           "  key = function(event)\n"
                           "    cache[1] = true\n"
                           "    return event.key\n"
                           "  end,\n"
                           "  on = { ['a.B'] = function(state)\n"
                           "    local count_here = 1\n"
                           "    local function inner()\n"
                           "      count_here = 2\n"
                           "      count = count + 1\n"
                           "    end\n"
                           "    inner()\n"
                           "  end } }\n"},
        {NULL, NULL},
    };
    struct script_fixture f;

    (void)state;
    fixture_open(&f, files);
    assert_string_equal(f.error, "");
    assert_string_equal(
        f.set.warnings[0],
        "handlers/x.lua:12: the handler for a.B of \"p\" assigns the local "
        "\"count\" of the file, which survives messages and rollbacks; keep "
        "such values in the state or in a table of the database");
    assert_null(f.set.warnings[1]);
    fixture_close(&f, files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_projection_is_copied_whole),
        cmocka_unit_test(nothing_to_declare_is_no_fault),
        cmocka_unit_test(names_that_databases_keep_are_refused),
        cmocka_unit_test(a_control_character_in_a_name_is_named),
        cmocka_unit_test(a_query_table_has_room_for_a_thousand_fields),
        cmocka_unit_test(every_wrong_member_is_named),
        cmocka_unit_test(every_wrong_field_is_named),
        cmocka_unit_test(a_name_that_is_not_there_is_an_error_of_its_line),
        cmocka_unit_test(a_file_must_return_its_declarations),
        cmocka_unit_test(what_comes_later_is_an_error_of_its_line),
        cmocka_unit_test(a_publisher_says_where_messages_go),
        cmocka_unit_test(the_steps_of_an_event_type_have_no_gap),
        cmocka_unit_test(every_wrong_member_of_an_event_type_is_named),
        cmocka_unit_test(stored_types_are_those_that_lead_to_a_handler),
        cmocka_unit_test(names_and_tables_are_used_once),
        cmocka_unit_test(a_table_file_must_be_there_for_the_dialect),
        cmocka_unit_test(assigned_file_locals_are_warned_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
