#include "script/declare.h"

#include "base/buffer.h"
#include "schema/names.h"
#include "schema/query_table.h"
#include "script/declare_build.h"
#include "script/declare_event_type.h"
#include "script/declare_steps.h"
#include "script/fingerprint_compute.h"
#include "script/lua_call.h"
#include "script/native.h"
#include "script/require.h"
#include "script/source_set.h"

#include <limits.h>
#include <stdio.h>
#include <strings.h>

#define FIELDS_MAX   1000 /* what a table of any database has room for */
#define TABLES_LIMIT ((size_t)1 << 20) /* bytes of a DDL file */

/* Pushes a function of lua/moontide/declare.lua. */
static void push_function(lua_State *L, const char *name)
{
    lua_pushcfunction(L, require_module);
    lua_pushliteral(L, "moontide.declare");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

void declare_begin(lua_State *L)
{
    script_state_push_native(script_state_of(L), L);
    native_open(L, true);
    lua_pop(L, 1);
    lua_pushcfunction(L, require_module);
    lua_pushliteral(L, "moontide");
    lua_call(L, 1, 0);
}

void declare_file(lua_State *L, const char *file, int count)
{
    luaL_checkstack(L, 4, NULL);
    push_function(L, "collect");
    lua_insert(L, -count - 1);
    lua_pushstring(L, file);
    lua_insert(L, -count - 1);
    lua_call(L, count + 1, 0);
}

/* --- one declaration
 * --------------------------------------------------------------------------
 */

/* Those of a query table. */
static void take_fields(const struct declare_build *b)
{
    struct declaration *d = b->declaration;

    lua_getfield(b->L, b->at, "fields");
    d->fields = declare_fields(b, &d->nfields);
    if (d->nfields <= FIELDS_MAX)
        return;
    lua_pushfstring(b->L, "has %d fields, and a query table takes %d",
                    (int)d->nfields, FIELDS_MAX);
    declare_fail(b, lua_tostring(b->L, -1));
}

static void take_handlers(const struct declare_build *b)
{
    const struct declaration *d = b->declaration;

    b->code->handlers = arena_alloc(b->set->arena,
                                    d->ntypes * sizeof(*b->code->handlers) + 1);
    lua_getfield(b->L, b->at, "handlers");
    for (size_t i = 0; i < d->ntypes; i++) {
        lua_pushlstring(b->L, d->types[i].data, d->types[i].len);
        lua_rawget(b->L, -2);
        b->code->handlers[i] = luaL_ref(b->L, LUA_REGISTRYINDEX);
    }
    lua_pop(b->L, 1);
}

static void take_query_table(const struct declare_build *b)
{
    struct declaration *d = b->declaration;
    char name[TABLE_NAME_MAX + 1];
    struct diag diag;

    d->table = declare_text(b, "table").data;
    if (d->table != NULL) {
        if (names_table_name("table", d->table, &diag) != STATUS_OK)
            declare_fail(b, diag.message);
        return;
    }
    if (query_table_name(d->name, name, sizeof(name), &diag) != STATUS_OK)
        declare_fail(b, diag.message);
    d->table = arena_string(b->set->arena, text_of(name));
}

static double take_number(const struct declare_build *b, int at,
                          const char *key, double otherwise)
{
    double value;

    lua_getfield(b->L, at, key);
    value = lua_isnumber(b->L, -1) ? lua_tonumber(b->L, -1) : otherwise;
    lua_pop(b->L, 1);
    return value;
}

/* declare.lua has checked the values; durations are in microseconds. */
static void take_policy(const struct declare_build *b)
{
    struct failure_policy *policy = &b->declaration->policy;
    struct retry_policy *retry = &policy->retry;
    int at;

    *policy = b->set->policy;
    lua_getfield(b->L, b->at, "retry");
    at = lua_gettop(b->L);
    if (lua_istable(b->L, at)) {
        retry->attempts = (int)take_number(b, at, "attempts", retry->attempts);
        retry->delay_us = (int64_t)take_number(b, at, "delay",
                                               (double)retry->delay_us);
        retry->factor = take_number(b, at, "factor", retry->factor);
        retry->max_delay_us = (int64_t)take_number(b, at, "max_delay",
                                                   (double)retry->max_delay_us);
        retry->jitter = take_number(b, at, "jitter", retry->jitter);
    }
    lua_pop(b->L, 1);
    b->code->on_error = LUA_NOREF;
    lua_getfield(b->L, b->at, "on_error");
    policy->decides = lua_isfunction(b->L, -1);
    if (policy->decides) {
        b->code->on_error = luaL_ref(b->L, LUA_REGISTRYINDEX);
        return;
    }
    if (lua_isstring(b->L, -1))
        error_policy_parse(text_of(lua_tostring(b->L, -1)), &policy->on_error);
    lua_pop(b->L, 1);
}

/* The path of the DDL file for this dialect, NULL when there is none. */
static const char *take_tables_path(const struct declare_build *b)
{
    lua_getfield(b->L, b->at, "tables");
    if (lua_istable(b->L, -1)) {
        lua_getfield(b->L, -1, b->set->dialect);
        lua_remove(b->L, -2);
        if (lua_isnil(b->L, -1)) {
            lua_pushfstring(b->L, "tables has no file for %s", b->set->dialect);
            declare_fail(b, lua_tostring(b->L, -1));
        }
    }
    return declare_pop_text(b).data;
}

static void take_tables(const struct declare_build *b)
{
    const struct script_state *state = script_state_of(b->L);
    struct declaration *d = b->declaration;
    struct buffer content = BUFFER_EMPTY;
    char path[PATH_MAX];
    struct diag diag;
    enum status status;
    int len;

    d->tables_file = take_tables_path(b);
    if (d->tables_file == NULL)
        return;
    if (state->sources != NULL && source_set_is_sealed(state->sources)) {
        d->tables_sql = source_set_text(state->sources, d->tables_file);
        if (d->tables_sql.data == NULL)
            declare_fail(b, "tables: the file is no part of the version");
        return;
    }
    len = snprintf(path, sizeof(path), "%s/%s",
                   state->app_dir != NULL ? state->app_dir : ".",
                   d->tables_file);
    if (len < 0 || (size_t)len >= sizeof(path))
        declare_fail(b, "tables: the path is too long");
    status = buffer_read_file(&content, path, TABLES_LIMIT, &diag);
    if (status == STATUS_OK)
        d->tables_sql = arena_copy(b->set->arena, buffer_text(&content));
    if (status == STATUS_OK && state->sources != NULL)
        source_set_add_other(state->sources, d->tables_file,
                             buffer_text(&content));
    buffer_free(&content);
    if (status != STATUS_OK) {
        lua_pushfstring(b->L, "tables = \"%s\": %s", d->tables_file,
                        diag.message);
        declare_fail(b, lua_tostring(b->L, -1));
    }
}

/* Without the files' sources (tests) there is no fingerprint. */
static void take_fingerprint(const struct declare_build *b)
{
    const struct fingerprint_code code = {
        .file = declare_text(b, "returned_by").data,
        .key_field = declare_text(b, "key_field").data,
        .key = b->code->key,
    };

    if (script_state_of(b->L)->sources != NULL)
        fingerprint_compute(b->L, b->declaration, &code, b->set);
}

static enum declaration_kind kind_of(const struct declare_build *b)
{
    static const enum declaration_kind kinds[] = {
        DECLARATION_PROJECTION, DECLARATION_SQL_PROJECTION,
        DECLARATION_LISTENER, DECLARATION_SAGA, DECLARATION_AGGREGATE};
    struct text word = declare_text(b, "kind");

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (text_equal(text_of(declaration_kind_word(kinds[i])), word))
            return kinds[i];
    return DECLARATION_PROJECTION; /* declare.lua gives no other word */
}

/* What all kinds have. */
static void take_common(struct declare_build *b, size_t index)
{
    struct declaration *d = &b->set->items[index];

    b->declaration = d;
    b->code = &b->set->code[index];
    *b->code = (struct declare_code){
        .key = LUA_NOREF,
        .reset = LUA_NOREF,
        .on_error = LUA_NOREF,
        .on_end = LUA_NOREF,
    };
    d->kind = kind_of(b);
    d->index = index;
    d->name = declare_text(b, "name").data;
    d->file = declare_text(b, "file").data;
    d->line = (int)declare_integer(b, b->at, "line");
    d->source = declare_text(b, "source").data;
    d->types = declare_texts(b, "types", &d->ntypes);
    declare_stored_types(b);
    take_handlers(b);
    b->code->initial = declare_function(b, "initial");
}

static enum saga_unknown unknown_of(struct text word)
{
    static const enum saga_unknown all[] = {
        SAGA_UNKNOWN_IGNORE, SAGA_UNKNOWN_DEAD_LETTER, SAGA_UNKNOWN_ERROR};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (text_equal(text_of(declaration_unknown_word(all[i])), word))
            return all[i];
    return SAGA_UNKNOWN_IGNORE; /* declare_saga.lua gives no other word */
}

/* Pushes the member of the table at the top that a text names. */
static void push_member(const struct declare_build *b, struct text name)
{
    lua_pushlstring(b->L, name.data, name.len);
    lua_rawget(b->L, -2);
}

static void take_saga(const struct declare_build *b)
{
    struct declaration *d = b->declaration;
    bool *starts = arena_alloc_zero(b->set->arena, d->ntypes + 1);

    lua_getfield(b->L, b->at, "starts");
    for (size_t i = 0; i < d->ntypes; i++) {
        push_member(b, d->types[i]);
        starts[i] = lua_toboolean(b->L, -1) != 0;
        lua_pop(b->L, 1);
    }
    lua_pop(b->L, 1);
    d->starts = starts;
    d->unknown = unknown_of(declare_text(b, "unknown"));
    d->deadlines = declare_texts(b, "deadlines", &d->ndeadlines);
    b->code->deadlines = arena_alloc(
        b->set->arena, d->ndeadlines * sizeof(*b->code->deadlines) + 1);
    lua_getfield(b->L, b->at, "deadline_functions");
    for (size_t i = 0; i < d->ndeadlines; i++) {
        push_member(b, d->deadlines[i]);
        b->code->deadlines[i] = luaL_ref(b->L, LUA_REGISTRYINDEX);
    }
    lua_pop(b->L, 1);
    declare_steps(b);
}

static void take_aggregate(struct declare_build *b, size_t index)
{
    struct declaration *d = &b->set->items[index];

    take_common(b, index);
    d->commands = declare_texts(b, "commands", &d->ncommands);
    b->code->commands = arena_alloc(
        b->set->arena, d->ncommands * sizeof(*b->code->commands) + 1);
    lua_getfield(b->L, b->at, "command_functions");
    for (size_t i = 0; i < d->ncommands; i++) {
        lua_pushlstring(b->L, d->commands[i].data, d->commands[i].len);
        lua_rawget(b->L, -2);
        b->code->commands[i] = luaL_ref(b->L, LUA_REGISTRYINDEX);
    }
    lua_pop(b->L, 1);
    d->snapshot_every = declare_integer(b, b->at, "snapshot_every");
    d->snapshot_version = (int)declare_integer(b, b->at, "snapshot_version");
}

static void take_declaration(struct declare_build *b, size_t index)
{
    struct declaration *d = &b->set->items[index];

    take_common(b, index);
    d->revision = declare_integer(b, b->at, "revision");
    d->aggregates = declare_texts(b, "aggregates", &d->naggregates);
    d->passes_gaps = declare_boolean(b, b->at, "passes_gaps");
    d->single_owner = declare_boolean(b, b->at, "single_owner");
    d->rebuild_on_change = declare_text(b, "on_change").data != NULL;
    b->code->key = declare_function(b, "key");
    b->code->reset = declare_function(b, "reset");
    d->own_key = b->code->key != LUA_NOREF;
    d->resettable = b->code->reset != LUA_NOREF;
    d->starts_now = declare_boolean(b, b->at, "starts_now");
    d->topic = declare_boolean(b, b->at, "topic");
    d->every_change = declare_boolean(b, b->at, "every_change");
    take_policy(b);
    take_fields(b);
    if (d->kind == DECLARATION_PROJECTION)
        take_query_table(b);
    else if (d->kind == DECLARATION_SQL_PROJECTION)
        take_tables(b);
    else if (d->kind == DECLARATION_SAGA)
        take_saga(b);
    if (declaration_is_projection(d))
        take_fingerprint(b);
}

/* A database may not tell upper from lower case in a table's name. */
static void check_tables(struct declare_build *b)
{
    for (size_t i = 0; i < b->set->count; i++) {
        b->declaration = &b->set->items[i];
        for (size_t j = 0; b->declaration->table != NULL && j < i; j++) {
            const struct declaration *other = &b->set->items[j];

            if (other->table == NULL ||
                strcasecmp(other->table, b->declaration->table) != 0)
                continue;
            lua_pushfstring(b->L,
                            "its table %s is that of projection \"%s\" "
                            "(%s:%d) already; give one of them another name "
                            "or table = \"...\"",
                            b->declaration->table, other->name, other->file,
                            other->line);
            declare_fail(b, lua_tostring(b->L, -1));
        }
    }
}

/* The lists of consumers and of aggregates that finish gave. */
static void take_declarations(struct declare_build *b, int consumers,
                              int aggregates)
{
    struct declare_set *set = b->set;

    set->count = lua_objlen(b->L, consumers);
    set->total = set->count + lua_objlen(b->L, aggregates);
    set->items = arena_alloc_zero(set->arena,
                                  set->total * sizeof(*set->items) + 1);
    set->code = arena_alloc_zero(set->arena,
                                 set->total * sizeof(*set->code) + 1);
    for (size_t i = 0; i < set->total; i++) {
        bool consumer = i < set->count;

        lua_rawgeti(b->L, consumer ? consumers : aggregates,
                    (int)(consumer ? i : i - set->count) + 1);
        b->at = lua_gettop(b->L);
        if (consumer)
            take_declaration(b, i);
        else
            take_aggregate(b, i);
        lua_pop(b->L, 1);
    }
}

static void take_publishers(struct declare_build *b, int list)
{
    struct declare_set *set = b->set;
    size_t count = lua_objlen(b->L, list);
    struct publisher *items = arena_alloc_zero(set->arena,
                                               count * sizeof(*items) + 1);

    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(b->L, list, (int)i + 1);
        b->at = lua_gettop(b->L);
        items[i] = (struct publisher){
            .name = declare_text(b, "name").data,
            .file = declare_text(b, "file").data,
            .line = (int)declare_integer(b, b->at, "line"),
            .to = declare_text(b, "to").data,
        };
        lua_pop(b->L, 1);
    }
    set->publishers = (struct publishers){.items = items, .count = count};
}

void declare_end(lua_State *L, struct declare_set *set)
{
    struct declare_build b = {.L = L, .set = set};
    int top = lua_gettop(L);

    luaL_checkstack(L, 20, NULL);
    push_function(L, "finish");
    lua_call(L, 0, 4); /* consumers, aggregates, event types, publishers */
    declare_event_types(&b, top + 3);
    take_publishers(&b, top + 4);
    take_declarations(&b, top + 1, top + 2);
    lua_settop(L, top);
    check_tables(&b);
}
