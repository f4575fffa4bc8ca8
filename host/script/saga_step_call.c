#include "script/saga_step_call.h"

#include "base/clock.h"
#include "model/saga_steps.h"
#include "script/json_codec.h"
#include "script/json_tags.h"
#include "script/returned.h"
#include "script/value.h"

void saga_step_call_take_message(lua_State *L, struct handler_job *job,
                                 int function)
{
    struct handler_saga *saga = job->saga;
    struct buffer *out = &job->code->scratch;
    char where[LIMITS_TEXT_SIZE], shown[128];
    struct diag diag;
    bool one;

    one = returned_one(L, function + 1, shown, sizeof(shown));
    handler_run_where(L, function, where, sizeof(where));
    buffer_clear(out);
    if (!one || !lua_istable(L, -1)) {
        if (one)
            value_describe(L, -1, shown, sizeof(shown));
        failure_set(job->failure, false, "state",
                    "%s: message returned %s; it returns the payload, a table",
                    where, shown);
        handler_run_fail(job);
    } else if (json_codec_encode(L, lua_gettop(L), "payload", out, &diag) !=
               STATUS_OK) {
        failure_set(job->failure, false, "state", "%s: message: %s", where,
                    diag.message);
        handler_run_fail(job);
    } else {
        saga->message = arena_copy(saga->arena, buffer_text(out));
    }
}

static void set_time(lua_State *L, const char *name, int64_t at)
{
    char text[CLOCK_TEXT_SIZE];

    if (at == 0)
        return;
    clock_format(at, text);
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, struct text text)
{
    if (text.data == NULL)
        return;
    lua_pushlstring(L, text.data, text.len);
    lua_setfield(L, -2, name);
}

static void set_id(lua_State *L, const char *name, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(id, text);
    set_text(L, name, text_of(text));
}

static void set_number(lua_State *L, const char *name, int number)
{
    lua_pushinteger(L, number);
    lua_setfield(L, -2, name);
}

static void push_row(lua_State *L, const struct saga_step_row *row)
{
    lua_createtable(L, 0, 14);
    set_text(L, "step", row->name);
    set_number(L, "round", row->round);
    set_text(L, "state", text_of(saga_step_state_word(row->state)));
    set_id(L, "command_id", &row->command_id);
    if (row->has_compensation_id)
        set_id(L, "compensation_id", &row->compensation_id);
    set_number(L, "sends", row->sends);
    set_number(L, "compensation_sends", row->compensation_sends);
    set_text(L, "reason", row->reason);
    set_time(L, "deadline_at", row->deadline_at);
    set_time(L, "sent_at", row->sent_at);
    set_time(L, "answered_at", row->answered_at);
    set_time(L, "compensation_sent_at", row->compensation_sent_at);
    set_time(L, "compensated_at", row->compensated_at);
}

void saga_step_call_push_history(struct handler_code *code, lua_State *L)
{
    const struct saga_steps *steps = code->saga->steps;

    if (steps == NULL) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, (int)steps->nrows, 0);
    json_tags_push_array(L);
    lua_setmetatable(L, -2);
    for (size_t i = 0; i < steps->nrows; i++) {
        push_row(L, &steps->rows[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
}
