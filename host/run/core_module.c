#include "run/core_module.h"

#include "db/db.h"
#include "db/url.h"
#include "run/core_command.h"
#include "run/core_operate.h"
#include "run/core_read.h"
#include "run/test_host.h"
#include "script/native.h"
#include "script/value.h"

#include <lauxlib.h>
#include <math.h>

#define HOST_TYPE    "moontide.host"
#define SCRATCH_TYPE "moontide.scratch"
#define SEQUENCE_MAX 9007199254740992.0 /* a number is exact up to it */

/* The userdata is a box; close empties it, so a host that a spec keeps after
 * its end gives an error. */
struct box {
    struct test_host *host;
};

struct test_host *core_module_host(lua_State *L, int arg)
{
    const struct box *box = luaL_checkudata(L, arg, HOST_TYPE);

    luaL_argcheck(L, box->host != NULL, arg, "the host is closed");
    return box->host;
}

/* Raises the text of a failure; the caller owns nothing by then. */
static int raise_diag(lua_State *L, const struct diag *diag)
{
    return luaL_error(L, "%s", diag->message);
}

/* --- reading arguments ---------------------------------------------------- */

/* A string member of the table on the top, NULL data when it is nil. The
 * string stays alive with the table. */
static struct text member_text(lua_State *L, const char *name)
{
    struct text text = TEXT_NONE;

    lua_getfield(L, -1, name);
    if (lua_type(L, -1) == LUA_TSTRING)
        text.data = lua_tolstring(L, -1, &text.len);
    else if (!lua_isnil(L, -1))
        luaL_error(L, "event: '%s' must be a string, not a %s", name,
                   luaL_typename(L, -1));
    lua_pop(L, 1);
    return text;
}

static void take_revision(lua_State *L, struct append_event *event)
{
    lua_getfield(L, -1, "revision");
    event->has_revision = !lua_isnil(L, -1);
    if (event->has_revision && !value_revision(L, -1, &event->revision))
        luaL_error(L, "event: 'revision' must be a whole number from 0");
    lua_pop(L, 1);
}

static void take_sequence(lua_State *L, struct append_event *event)
{
    lua_Number number = lua_tonumber(L, -1);

    if (lua_type(L, -1) != LUA_TNUMBER || !(number >= 0) ||
        number > SEQUENCE_MAX || number != floor(number))
        luaL_error(L, "event: expected is \"any\", \"none\" or the sequence "
                      "number of the stream's last event, from 0");
    event->expect = APPEND_AT;
    event->expected = (int64_t)number;
}

static void take_expected(lua_State *L, struct append_event *event)
{
    lua_getfield(L, -1, "expected");
    if (lua_type(L, -1) == LUA_TSTRING) {
        const char *word = lua_tostring(L, -1);

        if (strcmp(word, "none") == 0)
            event->expect = APPEND_NONE;
        else if (strcmp(word, "any") != 0)
            luaL_error(L,
                       "event: expected is \"any\", \"none\" or a number, "
                       "not '%s'",
                       word);
    } else if (!lua_isnil(L, -1)) {
        take_sequence(L, event);
    }
    lua_pop(L, 1);
}

void core_module_event(lua_State *L, struct append_event *event)
{
    struct text id, occurred_at;
    struct diag diag;

    *event = (struct append_event){.expect = APPEND_ANY};
    event->aggregate_type = member_text(L, "aggregate_type");
    event->aggregate_id = member_text(L, "aggregate_id");
    event->key = member_text(L, "key");
    event->type = member_text(L, "type");
    event->payload = member_text(L, "payload");
    event->metadata = member_text(L, "metadata");
    take_revision(L, event);
    id = member_text(L, "id");
    event->has_id = id.data != NULL;
    if (event->has_id && !uuid_parse(id, &event->id))
        luaL_error(L, "event: id '%s' is not a UUID", id.data);
    occurred_at = member_text(L, "occurred_at");
    event->has_occurred_at = occurred_at.data != NULL;
    if (event->has_occurred_at &&
        clock_parse(occurred_at, &event->occurred_at, &diag) != STATUS_OK)
        luaL_error(L, "event: occurred_at: %s", diag.message);
    take_expected(L, event);
}

/* --- host methods --------------------------------------------------------- */

/* core.host(configuration, folder[, late]) -> host */
static int core_host(lua_State *L)
{
    const char *app_dir = luaL_checkstring(L, 2);
    bool late = lua_toboolean(L, 3) != 0;
    struct diag diag;
    struct box *box;

    luaL_checktype(L, 1, LUA_TTABLE);
    box = lua_newuserdata(L, sizeof(*box));
    box->host = NULL;
    luaL_getmetatable(L, HOST_TYPE);
    lua_setmetatable(L, -2);
    if (test_host_open(L, 1, app_dir, late, &box->host, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    return 1;
}

/* host:close() */
static int method_close(lua_State *L)
{
    struct box *box = luaL_checkudata(L, 1, HOST_TYPE);

    test_host_close(box->host);
    box->host = NULL;
    return 0;
}

typedef enum status (*write_fn)(struct test_host *host,
                                struct append_event *events, size_t count,
                                struct append_result *results,
                                struct diag *diag);

/* Argument 2: the events -> list of { id, sequence, position, repeated } */
static int write_events(lua_State *L, write_fn write)
{
    struct test_host *host = core_module_host(L, 1);
    size_t count;
    struct append_event *events;
    struct append_result *results;
    struct diag diag;

    luaL_checktype(L, 2, LUA_TTABLE);
    count = lua_objlen(L, 2);
    luaL_argcheck(L, count > 0 && count <= 1000000, 2,
                  "a list of 1 to 1000000 events expected");
    events = lua_newuserdata(L, count * sizeof(*events));
    results = lua_newuserdata(L, count * sizeof(*results));
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (int)i + 1);
        luaL_argcheck(L, lua_istable(L, -1), 2, "an event must be a table");
        core_module_event(L, &events[i]);
        lua_pop(L, 1);
    }
    if (write(host, events, count, results, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        char id[UUID_TEXT_LEN + 1];

        uuid_format(&results[i].id, id);
        lua_createtable(L, 0, 4);
        lua_pushstring(L, id);
        lua_setfield(L, -2, "id");
        if (results[i].sequence != MESSAGE_NO_SEQUENCE) {
            lua_pushnumber(L, (lua_Number)results[i].sequence);
            lua_setfield(L, -2, "sequence");
        }
        lua_pushnumber(L, (lua_Number)results[i].position);
        lua_setfield(L, -2, "position");
        lua_pushboolean(L, results[i].repeated);
        lua_setfield(L, -2, "repeated");
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* host:append(events) -> results */
static int method_append(lua_State *L)
{
    return write_events(L, test_host_append);
}

/* host:emit(events) -> results */
static int method_emit(lua_State *L)
{
    return write_events(L, test_host_emit);
}

/* host:run() -> applied, failed (since the host was opened) */
static int method_run(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    struct host_progress progress = {.applied = 0};
    struct diag diag;

    if (test_host_run(host, &progress, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    lua_pushnumber(L, (lua_Number)progress.applied);
    lua_pushnumber(L, (lua_Number)progress.failed);
    return 2;
}

static int method_redeliver(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    struct diag diag;

    if (test_host_redeliver(host, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    return 0;
}

static int method_restart(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    struct diag diag;

    if (test_host_restart(host, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    return 0;
}

/* host:reload(accept) -> changed, version, changes; raises when the saved set
 * is not taken */
static int method_reload(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    bool accept = lua_toboolean(L, 2) != 0;
    struct buffer *changes = core_module_scratch(L);
    struct reload_report report;
    struct diag diag;

    if (test_host_reload(host, accept, &report, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    *changes = report.changes; /* the collector's from here on */
    lua_pushboolean(L, report.changed);
    lua_pushstring(L, report.version);
    lua_pushlstring(L, buffer_text(changes).data, changes->len);
    return 3;
}

/* host:advance(seconds or "30m") */
static int method_advance(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    struct text text;
    struct diag diag;
    int64_t us;

    text.data = luaL_checklstring(L, 2, &text.len);
    if (clock_parse_duration(text, &us, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    if (us > CLOCK_MAX - clock_now(&host->app.clock))
        return luaL_error(L, "advance: %s would lead behind the year 9999",
                          text.data);
    clock_advance(&host->app.clock, us);
    return 0;
}

/* host:advance_to(RFC 3339 text): the clock never goes back */
static int method_advance_to(lua_State *L)
{
    struct application *app = &core_module_host(L, 1)->app;
    struct text text;
    struct diag diag;
    int64_t time, now;

    text.data = luaL_checklstring(L, 2, &text.len);
    if (clock_parse(text, &time, &diag) != STATUS_OK ||
        application_clock(app, &now, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    if (time > now)
        clock_advance(&app->clock, time - now);
    return 0;
}

/* host:stand(whether the clock stands) */
static int method_stand(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);

    luaL_checktype(L, 2, LUA_TBOOLEAN);
    clock_stand(&host->app.clock, lua_toboolean(L, 2) != 0);
    return 0;
}

/* host:now() -> RFC 3339 text */
static int method_now(lua_State *L)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(clock_now(&core_module_host(L, 1)->app.clock), text);
    lua_pushstring(L, text);
    return 1;
}

/* host:fail(consumer, type, times) */
static int method_fail(lua_State *L)
{
    struct test_host *host = core_module_host(L, 1);
    const char *consumer = luaL_checkstring(L, 2);
    const char *type = luaL_checkstring(L, 3);
    int times = luaL_optint(L, 4, 1);
    const struct declaration *declaration;
    struct diag diag;

    luaL_argcheck(L, times >= 0, 4, "must not be negative");
    if (test_host_declaration(host, consumer, &declaration, &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    for (size_t i = 0; i < declaration->nstored; i++)
        if (text_equal(declaration->stored[i], text_of(type))) {
            script_fail_next(host->app.script, consumer, type, times);
            return 0;
        }
    return luaL_error(L, "'%s' has no handler for '%s'", consumer, type);
}

/* --- results as JSON ------------------------------------------------------ */

/* A buffer that Lua's collector frees, so that raising leaks nothing. */
struct buffer *core_module_scratch(lua_State *L)
{
    struct buffer *buffer = lua_newuserdata(L, sizeof(*buffer));

    *buffer = BUFFER_EMPTY;
    luaL_getmetatable(L, SCRATCH_TYPE);
    lua_setmetatable(L, -2);
    return buffer;
}

static int scratch_gc(lua_State *L)
{
    buffer_free(luaL_checkudata(L, 1, SCRATCH_TYPE));
    return 0;
}

int core_module_answer(lua_State *L, enum status status, struct buffer *out,
                       const struct diag *diag)
{
    if (status != STATUS_OK)
        return raise_diag(L, diag);
    lua_pushlstring(L, out->data, out->len);
    buffer_free(out);
    return 1;
}

/* --- pure checks ------------------------------------------------------ */

struct script_options core_module_options(lua_State *L,
                                          const struct clock *clock,
                                          const struct log *log)
{
    return (struct script_options){
        .app_dir = luaL_checkstring(L, 1),
        .scripts = luaL_checkstring(L, 2),
        .dialect = db_url_dialect(DB_URL_DEFAULT),
        .limits = {.time_us = 5 * CLOCK_SECOND,
                   .memory = INT64_C(256) << 20,
                   .payload = INT64_C(8) << 20},
        .clock = clock,
        .log = log,
    };
}

/* --- the module ------------------------------------------------------- */

/* core.scratch(url) -> URL of an empty database on its server */
static int core_scratch(lua_State *L)
{
    const char *url = luaL_checkstring(L, 1);
    struct buffer *made = core_module_scratch(L);
    struct diag diag;

    return core_module_answer(L, db_scratch(url, made, &diag), made, &diag);
}

/* core.drop_scratch(url): one that core.scratch has made */
static int core_drop_scratch(lua_State *L)
{
    struct diag diag;

    if (db_scratch_drop(luaL_checkstring(L, 1), &diag) != STATUS_OK)
        return raise_diag(L, &diag);
    return 0;
}

static const luaL_Reg host_methods[] = {
    {"append", method_append},
    {"emit", method_emit},
    {"run", method_run},
    {"redeliver", method_redeliver},
    {"restart", method_restart},
    {"reload", method_reload},
    {"advance", method_advance},
    {"advance_to", method_advance_to},
    {"stand", method_stand},
    {"now", method_now},
    {"fail", method_fail},
    {"close", method_close},
    {NULL, NULL},
};

int luaopen_moontide_core(lua_State *L)
{
    if (luaL_newmetatable(L, SCRATCH_TYPE)) {
        lua_pushcfunction(L, scratch_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 1);
    if (luaL_newmetatable(L, HOST_TYPE)) {
        lua_pushcfunction(L, method_close);
        lua_setfield(L, -2, "__gc");
        lua_newtable(L);
        luaL_register(L, NULL, host_methods);
        core_read_register(L);
        core_operate_register(L);
        core_command_register(L);
        lua_setfield(L, -2, "__index");
    }
    lua_pop(L, 1);
    lua_newtable(L);
    native_open(L, false);
    lua_pushcfunction(L, core_host);
    lua_setfield(L, -2, "host");
    lua_pushcfunction(L, core_read_fold);
    lua_setfield(L, -2, "fold");
    lua_pushcfunction(L, core_command_decide);
    lua_setfield(L, -2, "decide");
    lua_pushcfunction(L, core_scratch);
    lua_setfield(L, -2, "scratch");
    lua_pushcfunction(L, core_drop_scratch);
    lua_setfield(L, -2, "drop_scratch");
    return 1;
}
