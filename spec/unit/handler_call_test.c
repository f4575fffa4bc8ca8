/*
 * Handler call: what keys, states and events do between the models and the
 * user's code, and which failure each fault of a handler becomes.
 */
#include "script_fixture.h"

#include "script/json_codec.h"

#include <time.h>

#define PREAMBLE                                                               \
    "local moontide = require 'moontide'\n"                                    \
    "local t = moontide.types\n"

/* One projection whose handler of "a.B" has the given body. */
struct bench {
    struct script_file files[2];
    struct buffer text;
    struct script_fixture f;
    struct message message;
    struct handler_call call;
    struct failure failure;
    struct diag diag;
    enum handler_outcome outcome;
    struct buffer json;
    struct db_value fields[16];
    struct arena arena;
    struct buffer keys; /* "a|b|" */
};

static void bench_open(struct bench *b, const char *members, const char *body)
{
    *b = (struct bench){.outcome = HANDLER_CHANGED};
    buffer_printf(&b->text,
                  PREAMBLE "local kept\n"
                           "return moontide.projection 'p' { %s\n"
                           "on = { ['a.B'] = function(state, event, ctx)\n"
                           "%s\n"
                           "end } }\n",
                  members, body);
    b->files[0] = (struct script_file){"handlers/x.lua", b->text.data};
    fixture_open(&b->f, b->files);
    assert_string_equal(b->f.error, "");
    b->message = (struct message){
        .position = 7,
        .key = TEXT_LITERAL("K-1"),
        .type = TEXT_LITERAL("a.B"),
        .revision = 2,
        .payload = TEXT_LITERAL("{\"amount\":5,\"items\":[]}"),
        .metadata = TEXT_NONE,
        .occurred_at = INT64_C(1714521600123456),
        .aggregate_type = TEXT_LITERAL("bank.account"),
        .aggregate_id = TEXT_LITERAL("K-1"),
        .sequence = 3,
    };
    b->call = (struct handler_call){
        .declaration = &b->f.set.items[0],
        .message = &b->message,
        .key = TEXT_LITERAL("K-1"),
        .partition = 4,
        .attempt = 1,
    };
}

static void bench_close(struct bench *b)
{
    fixture_close(&b->f, b->files);
    buffer_free(&b->text);
    buffer_free(&b->json);
    buffer_free(&b->keys);
    arena_free(&b->arena);
}

static enum status decode(struct bench *b, const char *json)
{
    return handler_call_ops.state_decode(b->f.code, &b->call, 0, text_of(json),
                                         &b->failure);
}

static enum status apply(struct bench *b)
{
    return handler_call_ops.apply_state(b->f.code, &b->call, 0, &b->outcome,
                                        &b->failure, &b->diag);
}

static enum status encode(struct bench *b)
{
    buffer_clear(&b->json);
    return handler_call_ops.state_encode(b->f.code, &b->call, 0, &b->json,
                                         b->fields, &b->arena, &b->failure);
}

static void take_key(void *arg, struct text key)
{
    struct bench *b = arg;

    buffer_append_text(&b->keys, key);
    buffer_append_char(&b->keys, '|');
}

static enum status keys(struct bench *b)
{
    buffer_clear(&b->keys);
    return handler_call_ops.keys(b->f.code, &b->call, take_key, b, &b->failure);
}

/* The handler's body turns the stored state into the wanted one. */
static void expect_state(const char *stored, const char *body,
                         const char *wanted)
{
    struct bench b;

    bench_open(&b, "", body);
    assert_int_equal(decode(&b, stored), STATUS_OK);
    if (apply(&b) != STATUS_OK || encode(&b) != STATUS_OK)
        fail_msg("%s", b.failure.reason);
    assert_string_equal(b.json.data, wanted);
    bench_close(&b);
}

static void expect_failure(const char *body, const char *wanted)
{
    struct bench b;

    bench_open(&b, "", body);
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_string_equal(b.failure.reason, wanted);
    bench_close(&b);
}

/* --- states ----------------------------------------------------------------
 */

static void a_state_changes_in_place_or_is_returned(void **state)
{
    (void)state;
    expect_state("{\"n\":1,\"e\":[]}", "state.n = state.n + 1",
                 "{\"e\":[],\"n\":2}");
    expect_state("{\"n\":1}", "return { m = event.payload.items }",
                 "{\"m\":[]}");
}

static void delete_empties_the_slot(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "", "return moontide.delete");
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    assert_int_equal(b.outcome, HANDLER_DELETED);
    bench_close(&b);
}

static void any_other_result_fails(void **state)
{
    (void)state;
    expect_failure("return 5",
                   "state: handlers/x.lua:5: the handler returned 5 (a "
                   "number); return nothing, a table or moontide.delete");
    expect_failure("return moontide.add(1)",
                   "state: handlers/x.lua:5: the handler returned a table; "
                   "return nothing, a table or moontide.delete");
    expect_failure("return false",
                   "state: handlers/x.lua:5: the handler returned false (a "
                   "boolean); return nothing, a table or moontide.delete");
}

static void initial_makes_the_first_state(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "initial = function(key) return { key = key } end,", "");
    assert_int_equal(
        handler_call_ops.state_initial(b.f.code, &b.call, 0, &b.failure),
        STATUS_OK);
    assert_int_equal(encode(&b), STATUS_OK);
    assert_string_equal(b.json.data, "{\"key\":\"K-1\"}");
    bench_close(&b);
    bench_open(&b, "", "");
    assert_int_equal(
        handler_call_ops.state_initial(b.f.code, &b.call, 0, &b.failure),
        STATUS_OK);
    assert_int_equal(encode(&b), STATUS_OK);
    assert_string_equal(b.json.data, "{}");
    bench_close(&b);
    bench_open(&b, "initial = function() end,", "");
    assert_int_equal(
        handler_call_ops.state_initial(b.f.code, &b.call, 0, &b.failure),
        STATUS_FAILED);
    assert_string_equal(b.failure.reason,
                        "state: handlers/x.lua:4: initial returned nil; it "
                        "must return a table");
    bench_close(&b);
}

static void a_stored_state_that_is_no_object_fails(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "", "");
    assert_int_equal(decode(&b, "5"), STATUS_FAILED);
    assert_string_equal(
        b.failure.reason,
        "decode: handlers/x.lua:5: the stored state is no JSON object");
    assert_int_equal(decode(&b, "{\"n\":1"), STATUS_FAILED);
    assert_string_equal(
        b.failure.reason,
        "decode: handlers/x.lua:5: the stored state: expected , or } in an "
        "object at byte 6");
    bench_close(&b);
}

static void what_json_cannot_hold_fails_at_the_save(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "", "state.items = { { price = 0/0 } }");
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    buffer_append_string(&b.json, "before");
    assert_int_equal(handler_call_ops.state_encode(b.f.code, &b.call, 0,
                                                   &b.json, b.fields, &b.arena,
                                                   &b.failure),
                     STATUS_FAILED);
    assert_string_equal(
        b.failure.reason,
        "state: handlers/x.lua:5: state.items[1].price: NaN cannot be written "
        "as JSON");
    assert_string_equal(b.json.data, "before");
    bench_close(&b);
}

/* `body` makes a state that would read back as another one. */
static void expect_no_state(const char *body, const char *wanted)
{
    struct bench b;

    bench_open(&b, "", body);
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    assert_int_equal(encode(&b), STATUS_FAILED);
    assert_string_equal(b.failure.reason, wanted);
    bench_close(&b);
}

#define NO_METATABLE " has a metatable, which JSON cannot keep"

static void what_would_read_back_otherwise_is_no_state(void **state)
{
    (void)state;
    expect_no_state("state.e = event",
                    "state: handlers/x.lua:5: state.e" NO_METATABLE);
    expect_no_state("state.c = { ctx }",
                    "state: handlers/x.lua:5: state.c[1]" NO_METATABLE);
    expect_no_state("state.s = string",
                    "state: handlers/x.lua:5: state.s" NO_METATABLE);
    expect_no_state("state.t = setmetatable({}, { __index = state })",
                    "state: handlers/x.lua:5: state.t" NO_METATABLE);
    expect_no_state("return setmetatable({}, { __index = state })",
                    "state: handlers/x.lua:5: state" NO_METATABLE);
    expect_no_state("state.a = {} state.b = state.a",
                    "state: handlers/x.lua:5: state.b is the same table as "
                    "state.a; copy it");
    expect_no_state("state.a = event.payload state.b = event.payload",
                    "state: handlers/x.lua:5: state.b is the same table as "
                    "state.a; copy it");
    expect_state("{}", "state.last = event.payload",
                 "{\"last\":{\"amount\":5,\"items\":[]}}");
}

static void a_state_beyond_the_limit_fails(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "", "state.text = ('x'):rep(1000)");
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    assert_int_equal(encode(&b), STATUS_FAILED);
    assert_string_equal(
        b.failure.reason,
        "limit: handlers/x.lua:5: the state has 1011 bytes; limits.payload "
        "allows 1000");
    bench_close(&b);
}

/* --- fields ----------------------------------------------------------------
 */

static void fields_become_column_values(void **state)
{
    struct bench b;
    static const char members[] =
        "fields = { a_text = t.text(), b_int = t.integer(),\n"
        "c_double = t.double(), d_decimal = t.decimal(6, 2),\n"
        "e_bool = t.boolean(), f_date = t.date(), g_time = t.time(),\n"
        "h_at = t.timestamp(), i_id = t.uuid(), j_enum = t.enum { 'x' },\n"
        "k_bytes = t.bytes(), l_none = t.text { optional = true },\n"
        "m_big = t.integer() },";
    static const char stored[] =
        "{\"a_text\":\"\xc3\xa4\",\"b_int\":-5,\"c_double\":1.5,"
        "\"d_decimal\":\"-0012.5\",\"e_bool\":true,\"f_date\":\"2024-02-29\","
        "\"g_time\":\"12:00:00.500\",\"h_at\":\"2024-05-01T02:00:00+02:00\","
        "\"i_id\":\"0190F000-0000-7000-8000-000000000001\",\"j_enum\":\"x\","
        "\"k_bytes\":\"AP8=\",\"m_big\":9007199254740993}";
    char id[UUID_TEXT_LEN + 1];

    (void)state;
    bench_open(&b, members, "");
    assert_int_equal(decode(&b, stored), STATUS_OK);
    if (encode(&b) != STATUS_OK)
        fail_msg("%s", b.failure.reason);
    assert_true(text_equal(b.fields[0].as.text, TEXT_LITERAL("\xc3\xa4")));
    assert_int_equal(b.fields[1].as.integer, -5);
    assert_true(b.fields[2].as.number == 1.5);
    assert_true(text_equal(b.fields[3].as.text, TEXT_LITERAL("-12.50")));
    assert_int_equal(b.fields[4].type, DB_BOOL);
    assert_true(text_equal(b.fields[5].as.text, TEXT_LITERAL("2024-02-29")));
    assert_true(text_equal(b.fields[6].as.text, TEXT_LITERAL("12:00:00.5")));
    assert_int_equal(b.fields[7].type, DB_TIMESTAMP);
    assert_int_equal(b.fields[7].as.integer, INT64_C(1714521600000000));
    uuid_format(&b.fields[8].as.uuid, id);
    assert_string_equal(id, "0190f000-0000-7000-8000-000000000001");
    assert_true(text_equal(b.fields[9].as.text, TEXT_LITERAL("x")));
    assert_int_equal(b.fields[10].type, DB_BYTES);
    assert_true(text_equal(b.fields[10].as.text, TEXT_LITERAL("\0\xff")));
    assert_int_equal(b.fields[11].type, DB_NULL);
    assert_int_equal(b.fields[12].as.integer, INT64_C(9007199254740993));
    bench_close(&b);
}

static void expect_field_refused(const char *type, const char *json,
                                 const char *wanted)
{
    struct buffer members = BUFFER_EMPTY, stored = BUFFER_EMPTY;
    struct bench b;

    buffer_printf(&members, "fields = { f = t.%s },", type);
    buffer_printf(&stored, "{\"f\":%s}", json);
    bench_open(&b, members.data, "");
    assert_int_equal(decode(&b, stored.data), STATUS_OK);
    assert_int_equal(encode(&b), STATUS_FAILED);
    assert_string_equal(b.failure.reason, wanted);
    assert_int_equal(b.json.len, 0);
    bench_close(&b);
    buffer_free(&members);
    buffer_free(&stored);
}

static void a_value_of_another_type_fails(void **state)
{
    (void)state;
    expect_field_refused(
        "integer()", "\"12\"",
        "state: handlers/x.lua:5: field f: expected an integer, got \"12\" (a "
        "string)");
    expect_field_refused(
        "integer()", "1.5",
        "state: handlers/x.lua:5: field f: expected an integer, got 1.5 (a "
        "number)");
    expect_field_refused(
        "integer()", "null",
        "state: handlers/x.lua:5: field f: missing; expected an integer (or "
        "declare it with optional = true)");
    expect_field_refused(
        "text()", "12",
        "state: handlers/x.lua:5: field f: expected a string, got 12 (a "
        "number)");
    expect_field_refused(
        "text()", "\"a\\u0000\"",
        "state: handlers/x.lua:5: field f: expected UTF-8 text without NUL, "
        "got \"a?\" (a string)");
    expect_field_refused(
        "boolean()", "0",
        "state: handlers/x.lua:5: field f: expected a boolean, got 0 (a "
        "number)");
    expect_field_refused(
        "double()", "{}",
        "state: handlers/x.lua:5: field f: expected a number, got a table");
    expect_field_refused(
        "decimal(4, 2)", "12.5",
        "state: handlers/x.lua:5: field f: expected a decimal as a string, got "
        "12.5 (a number)");
    expect_field_refused(
        "decimal(4, 2)", "\"123.4\"",
        "state: handlers/x.lua:5: field f: \"123.4\" is no decimal(4, 2)");
    expect_field_refused(
        "decimal(4, 2)", "\"1.234\"",
        "state: handlers/x.lua:5: field f: \"1.234\" is no decimal(4, 2)");
    expect_field_refused(
        "decimal(4, 2)", "\"1e2\"",
        "state: handlers/x.lua:5: field f: \"1e2\" is no decimal(4, 2)");
    expect_field_refused(
        "decimal(4, 2)", "\"\"",
        "state: handlers/x.lua:5: field f: \"\" is no decimal(4, 2)");
    expect_field_refused(
        "date()", "\"2023-02-29\"",
        "state: handlers/x.lua:5: field f: expected a date YYYY-MM-DD, got "
        "\"2023-02-29\" (a string)");
    expect_field_refused(
        "timestamp()", "\"yesterday\"",
        "state: handlers/x.lua:5: field f: expected an RFC 3339 time, got "
        "\"yesterday\" (a string)");
    expect_field_refused(
        "uuid()", "\"{0190}\"",
        "state: handlers/x.lua:5: field f: expected a UUID, got \"{0190}\" (a "
        "string)");
    expect_field_refused("enum { 'x' }", "\"y\"",
                         "state: handlers/x.lua:5: field f: expected one of x, "
                         "got \"y\" (a string)");
    expect_field_refused(
        "bytes()", "\"A\"",
        "state: handlers/x.lua:5: field f: expected bytes as base64 text, got "
        "\"A\" (a string)");
}

static void decimals_come_out_with_their_scale(void **state)
{
    static const char *const cases[][3] = {
        {"decimal(4, 2)", "0", "0.00"},      {"decimal(4, 2)", "12", "12.00"},
        {"decimal(4, 2)", "+1.50", "1.50"},  {"decimal(4, 2)", "-0.0", "0.00"},
        {"decimal(4, 2)", "1.2000", "1.20"}, {"decimal(3, 0)", "007", "7"},
        {"decimal(2, 2)", "0.25", "0.25"},   {"decimal(2, 2)", "-0.2", "-0.20"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer members = BUFFER_EMPTY, stored = BUFFER_EMPTY;
        struct bench b;

        buffer_printf(&members, "fields = { f = t.%s },", cases[i][0]);
        buffer_printf(&stored, "{\"f\":\"%s\"}", cases[i][1]);
        bench_open(&b, members.data, "");
        assert_int_equal(decode(&b, stored.data), STATUS_OK);
        if (encode(&b) != STATUS_OK)
            fail_msg("%s", b.failure.reason);
        assert_string_equal(b.fields[0].as.text.data, cases[i][2]);
        bench_close(&b);
        buffer_free(&members);
        buffer_free(&stored);
    }
}

/* --- keys -------------------------------------------------------------------
 */

static void expect_keys(const char *function, const char *wanted)
{
    struct buffer members = BUFFER_EMPTY;
    struct bench b;

    buffer_printf(&members, "key = %s,", function);
    bench_open(&b, members.data, "");
    if (keys(&b) == STATUS_OK)
        assert_string_equal(buffer_text(&b.keys).data, wanted);
    else
        assert_string_equal(b.failure.reason, wanted);
    bench_close(&b);
    buffer_free(&members);
}

static void keys_are_told_once_each_in_order(void **state)
{
    (void)state;
    expect_keys("nil", "K-1|");
    expect_keys("function(e) return e.payload.amount, 'x', nil, 5, 'x' end",
                "5|x|");
    expect_keys("function() end", "");
    expect_keys("function() return nil end", "");
    expect_keys("function() return 9007199254740992, 12345678901234567LL end",
                "9007199254740992|12345678901234567|");
    expect_keys("moontide.by 'amount'", "5|");
    expect_keys("function() return 1, '2', 3, nil, 2, 5, 6, 7, 8, 9, '1', 10, "
                "10, nil, '11', 3, 11 end",
                "1|2|3|5|6|7|8|9|10|11|");
}

static void count_key(void *arg, struct text key)
{
    size_t *count = arg;

    (void)key;
    (*count)++;
}

/* Processor time for the keys of one message, of which half are repeated. */
static double time_of_keys(struct bench *b, int64_t keys_of_one)
{
    double best = 0;

    b->message.position = keys_of_one;
    for (int i = 0; i < 3; i++) {
        size_t count = 0;
        clock_t start = clock();
        double taken;

        if (handler_call_ops.keys(b->f.code, &b->call, count_key, &count,
                                  &b->failure) != STATUS_OK)
            fail_msg("%s", b->failure.reason);
        taken = (double)(clock() - start);
        assert_int_equal(count, keys_of_one / 2);
        if (i == 0 || taken < best)
            best = taken;
    }
    return best;
}

static void many_keys_of_one_message_cost_no_more_each(void **state)
{
    static const char function[] =
        "key = function(e) local t, n = {}, tonumber(e.position)\n"
        "for i = 1, n do t[i] = 'k' .. i % (n / 2) end return unpack(t) end,";
    struct bench b;
    double few, many;

    (void)state;
    bench_open(&b, function, "");
    few = time_of_keys(&b, 500);
    many = time_of_keys(&b, 7000);
    assert_true(many < 50 * few); /* comparing all would be 196 times */
    bench_close(&b);
}

static void a_value_that_is_no_key_fails(void **state)
{
    (void)state;
    expect_keys("function() return false end",
                "key: handlers/x.lua:4: the key function returned a boolean; a "
                "key is text of 1 to 255 characters or an integer");
    expect_keys("function() return 'a', '' end",
                "key: handlers/x.lua:4: the key function returned an empty "
                "string; a key is text of 1 to 255 characters or an integer");
    expect_keys("function() return {} end",
                "key: handlers/x.lua:4: the key function returned a table; a "
                "key is text of 1 to 255 characters or an integer");
    expect_keys("function() return ('x'):rep(256) end",
                "key: handlers/x.lua:4: the key function returned a string of "
                "more than 255 characters; a key is text of 1 to 255 "
                "characters or an integer");
    expect_keys("function() return 'a\\0' end",
                "key: handlers/x.lua:4: the key function returned a string "
                "with a NUL; a key is text of 1 to 255 characters or an "
                "integer");
    expect_keys("function() return '\\255' end",
                "key: handlers/x.lua:4: the key function returned a string "
                "that is not valid UTF-8; a key is text of 1 to 255 "
                "characters or an integer");
    expect_keys("function() return 1.5 end",
                "key: handlers/x.lua:4: the key function returned a number "
                "that is no exact integer; a key is text of 1 to 255 "
                "characters or an integer");
    expect_keys("moontide.by 'order_id'",
                "error: handlers/x.lua:4: the payload of a.B has no "
                "\"order_id\" to take the key from");
}

/* --- events ----------------------------------------------------------------
 */

static void an_event_has_every_field(void **state)
{
    (void)state;
    expect_state("{}",
                 "return { event.id, event.type, event.revision,\n"
                 "event.payload.amount, event.metadata == nil,\n"
                 "event.position, event.topic, event.key,\n"
                 "event.occurred_at, event.aggregate_type,\n"
                 "event.aggregate_id, event.sequence, ctx:now(),\n"
                 "ctx.key, ctx.partition, ctx.attempt, ctx.replaying,\n"
                 "ctx.delivery_id == nil, ctx.dialect }",
                 "[\"00000000-0000-0000-0000-000000000000\",\"a.B\",2,5,true,"
                 "7,\"event-store\",\"K-1\",\"2024-05-01T00:00:00.123456Z\","
                 "\"bank.account\",\"K-1\",3,\"2024-05-01T00:00:00.123456Z\","
                 "\"K-1\",4,1,false,true,\"sqlite\"]");
}

static void a_copy_is_a_plain_table(void **state)
{
    (void)state;
    expect_state("{}",
                 "local copy = event:copy()\n"
                 "return { copy.position, copy.payload.amount,\n"
                 "getmetatable(copy) == nil, copy.payload == event.payload }",
                 "[7,5,true,false]");
}

static void a_kept_event_or_ctx_is_an_error_afterwards(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "",
               "if not kept then local _ = event.type\n"
               "kept = { event, ctx, event:copy() } return end\n"
               "state.type = kept[1].type\n"
               "state.copied = kept[3].position\n"
               "state.event = select(2, pcall(function() return "
               "kept[1].payload end))\n"
               "state.unknown = select(2, pcall(function() return event.typ "
               "end))");
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    if (apply(&b) != STATUS_OK || encode(&b) != STATUS_OK)
        fail_msg("%s", b.failure.reason);
    assert_string_equal(
        b.json.data,
        "{\"copied\":7,\"event\":\"handlers/x.lua:10: an event is only "
        "readable inside its handler; take event:copy() there to keep "
        "it\",\"type\":\"a.B\",\"unknown\":\"handlers/x.lua:11: an event has "
        "no field \\\"typ\\\"; did you mean \\\"type\\\"?\"}");
    bench_close(&b);
}

static void a_payload_is_read_only_when_a_handler_looks(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "",
               "if event.revision == 2 then return end\n"
               "return event.payload");
    b.message.payload = TEXT_LITERAL("[1,{\"n\":99999999999999999999}]");
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    b.message.revision = 3;
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_string_equal(b.failure.reason,
                        "decode: handlers/x.lua:7: payload[2].n: the integer "
                        "99999999999999999999 does not fit into 64 bits; "
                        "write such values as text; only a handler that does "
                        "not look at event.payload can handle this event");
    b.message.payload = TEXT_LITERAL("{\"a\":{\"n\":1e400}}");
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_string_equal(b.failure.reason,
                        "decode: handlers/x.lua:7: payload.a.n: the number "
                        "1e400 does not fit into a double; write such values "
                        "as text; only a handler that does not look at "
                        "event.payload can handle this event");
    bench_close(&b);
}

static void each_call_reads_its_own_payload(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "key = function(e) e.payload.amount = 0 return 'k' end,",
               "state.amount = event.payload.amount");
    assert_int_equal(keys(&b), STATUS_OK);
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    assert_int_equal(encode(&b), STATUS_OK);
    assert_string_equal(b.json.data, "{\"amount\":5}");
    bench_close(&b);
}

/* --- failures ---------------------------------------------------------------
 */

static void errors_carry_class_and_place(void **state)
{
    (void)state;
    expect_failure("error('no money')", "error: handlers/x.lua:6: no money");
    expect_failure("error({ message = 'odd' })",
                   "error: handlers/x.lua:6: odd");
    expect_failure("local x = state.a.b",
                   "error: handlers/x.lua:6: attempt to index field 'a' (a "
                   "nil value)");
    expect_failure("ctx:execute('SELECT 1')",
                   "error: handlers/x.lua:6: ctx:execute needs a database, "
                   "and this call has none");
    expect_failure("ctx:publish('x')",
                   "error: handlers/x.lua:6: ctx:publish is not there in a "
                   "projection: only listeners and sagas may cause effects");
    expect_failure("ctx.qurey('x')",
                   "error: handlers/x.lua:6: ctx has no \"qurey\"; did you "
                   "mean \"query\"?");
    expect_failure("ctx.x = 1", "error: handlers/x.lua:6: ctx cannot be "
                                "changed; keep values in the state");
    expect_failure("coroutine.yield()",
                   "error: handlers/x.lua:6: attempt to yield across C-call "
                   "boundary (a handler may not yield, nor may a callback of "
                   "table.sort or string.gsub)");
}

static void permanent_errors_are_known(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "", "error(moontide.permanent('never'))");
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_true(b.failure.permanent);
    assert_string_equal(b.failure.reason, "error: handlers/x.lua:6: never");
    bench_close(&b);
}

static void failures_can_be_asked_for(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "", "");
    handler_call_fail_next(b.f.code, "p", "a.B", 2);
    handler_call_fail_next(b.f.code, "other", "a.B", 2);
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_string_equal(b.failure.reason,
                        "error: failure asked for by the test");
    assert_int_equal(apply(&b), STATUS_FAILED);
    assert_int_equal(apply(&b), STATUS_OK);
    bench_close(&b);
}

static void random_numbers_follow_the_message(void **state)
{
    struct bench b;
    struct buffer first = BUFFER_EMPTY;

    (void)state;
    bench_open(&b, "", "state.n = math.random()");
    assert_int_equal(decode(&b, "{}"), STATUS_OK);
    assert_int_equal(apply(&b), STATUS_OK);
    assert_int_equal(encode(&b), STATUS_OK);
    buffer_append_text(&first, buffer_text(&b.json));
    assert_int_equal(apply(&b), STATUS_OK);
    assert_int_equal(encode(&b), STATUS_OK);
    assert_string_equal(b.json.data, first.data);
    b.message.id.bytes[15] = 1;
    assert_int_equal(apply(&b), STATUS_OK);
    assert_int_equal(encode(&b), STATUS_OK);
    assert_string_not_equal(b.json.data, first.data);
    buffer_free(&first);
    bench_close(&b);
}

static void memory_does_not_grow_with_batches(void **state)
{
    struct bench b;
    size_t used = 0;

    (void)state;
    bench_open(&b, "", "state.list = { event.payload, event:copy() }");
    for (int batch = 0; batch < 300; batch++) {
        for (size_t slot = 0; slot < 50; slot++) {
            assert_int_equal(handler_call_ops.state_decode(
                                 b.f.code, &b.call, slot,
                                 TEXT_LITERAL("{\"a\":[1,2]}"), &b.failure),
                             STATUS_OK);
            assert_int_equal(handler_call_ops.apply_state(b.f.code, &b.call,
                                                          slot, &b.outcome,
                                                          &b.failure, &b.diag),
                             STATUS_OK);
        }
        handler_call_ops.batch_end(b.f.code);
        /* what is left when the garbage is gone */
        if (batch == 100 || batch == 299)
            lua_gc(b.f.state->L, LUA_GCCOLLECT, 0);
        if (batch == 100)
            used = b.f.state->limits.used;
    }
    assert_true(b.f.state->limits.used < used + used / 10);
    assert_int_equal(lua_gettop(b.f.state->L), 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_changes_in_place_or_is_returned),
        cmocka_unit_test(delete_empties_the_slot),
        cmocka_unit_test(any_other_result_fails),
        cmocka_unit_test(initial_makes_the_first_state),
        cmocka_unit_test(a_stored_state_that_is_no_object_fails),
        cmocka_unit_test(what_json_cannot_hold_fails_at_the_save),
        cmocka_unit_test(what_would_read_back_otherwise_is_no_state),
        cmocka_unit_test(a_state_beyond_the_limit_fails),
        cmocka_unit_test(fields_become_column_values),
        cmocka_unit_test(a_value_of_another_type_fails),
        cmocka_unit_test(decimals_come_out_with_their_scale),
        cmocka_unit_test(keys_are_told_once_each_in_order),
        cmocka_unit_test(many_keys_of_one_message_cost_no_more_each),
        cmocka_unit_test(a_value_that_is_no_key_fails),
        cmocka_unit_test(an_event_has_every_field),
        cmocka_unit_test(a_copy_is_a_plain_table),
        cmocka_unit_test(a_kept_event_or_ctx_is_an_error_afterwards),
        cmocka_unit_test(a_payload_is_read_only_when_a_handler_looks),
        cmocka_unit_test(each_call_reads_its_own_payload),
        cmocka_unit_test(errors_carry_class_and_place),
        cmocka_unit_test(permanent_errors_are_known),
        cmocka_unit_test(failures_can_be_asked_for),
        cmocka_unit_test(random_numbers_follow_the_message),
        cmocka_unit_test(memory_does_not_grow_with_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
