#include "script/json_codec.h"

#include "base/json.h"
#include "script/int64.h"
#include "script/json_number.h"
#include "script/json_place.h"
#include "script/json_tags.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define STACK_MEMBERS 16 /* of an object; more are sorted in a userdata */
#define STACK_DEPTH   64 /* deeper objects spare the Lua stack */

struct encoder {
    lua_State *L;
    struct buffer *out;
    const char *root;
    struct diag *diag;
    struct json_tags *tags;
    bool tree;          /* no table may be reached twice */
    const void *again;  /* the one that was */
    const void *wanted; /* the walk ends at this table, its path is: */
    char path[JSON_PLACE_SIZE];
};

/* A member while an object's keys are sorted. */
struct member {
    struct text key;
    int value; /* stack index of the value, 0: look it up */
};

static enum status encode_value(struct encoder *e, int index,
                                const struct json_place *up);

/* Strings without anything to escape go out in one piece. */
static void write_string(struct buffer *out, struct text text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            json_write_string(out, text);
            return;
        }
    }
    buffer_reserve(out, text.len + 2);
    out->data[out->len] = '"';
    memcpy(out->data + out->len + 1, text.data, text.len);
    out->data[out->len + 1 + text.len] = '"';
    out->len += text.len + 2;
    out->data[out->len] = '\0';
}

static enum status encode_string(struct encoder *e, int index,
                                 const struct json_place *up)
{
    struct text text;

    text.data = lua_tolstring(e->L, index, &text.len);
    if (!text_utf8_valid(text))
        return json_place_fail(up, e->root, e->diag,
                               "a string that is not valid UTF-8");
    write_string(e->out, text);
    return STATUS_OK;
}

static enum status encode_number(struct encoder *e, int index,
                                 const struct json_place *up)
{
    lua_Number number = lua_tonumber(e->L, index);

    if (json_number_write(e->out, number))
        return STATUS_OK;
    return json_place_fail(up, e->root, e->diag, "%s cannot be written as JSON",
                           isnan(number) ? "NaN" : "an infinite number");
}

static enum status encode_cdata(struct encoder *e, int index,
                                const struct json_place *up)
{
    int64_t value;

    switch (int64_read(e->L, index, &value)) {
    case INT64_VALUE:
        json_number_write_integer(e->out, value);
        return STATUS_OK;
    case INT64_RANGE:
        return json_place_fail(up, e->root, e->diag,
                               "an unsigned integer beyond 64 signed bits");
    default:
        return json_place_fail(up, e->root, e->diag,
                               "a cdata value cannot be written as JSON");
    }
}

/* Checks that the keys are 1..n and tells n. The length operator would do
 * with any border of a table with holes. */
static enum status check_sequence(struct encoder *e, int index, size_t *n,
                                  const struct json_place *up)
{
    lua_Number last = 0;
    size_t count = 0;

    lua_pushnil(e->L);
    while (lua_next(e->L, index) != 0) {
        lua_Number key;

        lua_pop(e->L, 1);
        if (lua_type(e->L, -1) != LUA_TNUMBER)
            return json_place_fail(up, e->root, e->diag,
                                   "an array with a key that is a %s",
                                   lua_typename(e->L, lua_type(e->L, -1)));
        key = lua_tonumber(e->L, -1);
        if (key < 1 || key > INT_MAX || key != floor(key))
            return json_place_fail(up, e->root, e->diag,
                                   "an array with the key [%.14g]", key);
        if (key > last)
            last = key;
        count++;
    }
    if (last != (lua_Number)count)
        return json_place_fail(up, e->root, e->diag,
                               "an array with holes: %zu items, the last of "
                               "them at [%.14g]",
                               count, last);
    *n = count;
    return STATUS_OK;
}

static enum status encode_array(struct encoder *e, int index,
                                struct json_place *place)
{
    size_t n = 0;
    enum status status = check_sequence(e, index, &n, place->up);

    if (status != STATUS_OK)
        return status;
    buffer_append_char(e->out, '[');
    for (size_t i = 1; i <= n; i++) {
        if (i > 1)
            buffer_append_char(e->out, ',');
        place->index = (int64_t)i;
        lua_rawgeti(e->L, index, (int)i);
        status = encode_value(e, lua_gettop(e->L), place);
        if (status != STATUS_OK)
            return status;
        lua_pop(e->L, 1);
    }
    buffer_append_char(e->out, ']');
    return STATUS_OK;
}

static int compare_members(const void *a, const void *b)
{
    const struct text *left = &((const struct member *)a)->key;
    const struct text *right = &((const struct member *)b)->key;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->data, right->data, len);

    if (order != 0)
        return order;
    return (left->len > right->len) - (left->len < right->len);
}

/* Few members, as most objects have: no call and no allocation. */
static void sort_members(struct member *members, size_t n)
{
    if (n > STACK_MEMBERS) {
        qsort(members, n, sizeof(*members), compare_members);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        struct member member = members[i];
        size_t at = i;

        for (; at > 0 && compare_members(&members[at - 1], &member) > 0; at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
}

static enum status write_members(struct encoder *e, int index,
                                 struct member *members, size_t n,
                                 struct json_place *place)
{
    enum status status;

    sort_members(members, n);
    buffer_append_char(e->out, '{');
    for (size_t i = 0; i < n; i++) {
        int value = members[i].value;

        place->key = members[i].key;
        if (!text_utf8_valid(place->key))
            return json_place_fail(place, e->root, e->diag,
                                   "a key that is not valid UTF-8");
        if (i > 0)
            buffer_append_char(e->out, ',');
        write_string(e->out, place->key);
        buffer_append_char(e->out, ':');
        if (value == 0) {
            lua_pushlstring(e->L, place->key.data, place->key.len);
            lua_rawget(e->L, index);
            value = lua_gettop(e->L);
        }
        status = encode_value(e, value, place);
        if (status != STATUS_OK)
            return status;
        if (members[i].value == 0)
            lua_pop(e->L, 1);
    }
    buffer_append_char(e->out, '}');
    return STATUS_OK;
}

/* Reads the key at the top into `member`; converting a number key would
 * confuse lua_next, so other types fail. */
static enum status take_key(struct encoder *e, int key, struct member *member,
                            const struct json_place *up)
{
    if (lua_type(e->L, key) != LUA_TSTRING) {
        if (lua_type(e->L, key) == LUA_TNUMBER)
            return json_place_fail(up, e->root, e->diag,
                                   "an object with the number key [%.14g]; "
                                   "keys must be strings",
                                   lua_tonumber(e->L, key));
        return json_place_fail(up, e->root, e->diag,
                               "an object with a key that is a %s",
                               lua_typename(e->L, lua_type(e->L, key)));
    }
    member->key.data = lua_tolstring(e->L, key, &member->key.len);
    return STATUS_OK;
}

static enum status encode_large_object(struct encoder *e, int index,
                                       struct json_place *place)
{
    struct member *members;
    size_t n = 0, i = 0;
    enum status status;

    for (lua_pushnil(e->L); lua_next(e->L, index) != 0; lua_pop(e->L, 1))
        n++;
    members = lua_newuserdata(e->L, n * sizeof(*members));
    for (lua_pushnil(e->L); lua_next(e->L, index) != 0; lua_pop(e->L, 1)) {
        status = take_key(e, -2, &members[i], place->up);
        if (status != STATUS_OK)
            return status;
        members[i++].value = 0;
    }
    status = write_members(e, index, members, n, place);
    if (status == STATUS_OK)
        lua_pop(e->L, 1);
    return status;
}

/* Keeps keys and values on the Lua stack, so that nothing is looked up. */
static enum status encode_object(struct encoder *e, int index,
                                 struct json_place *place)
{
    struct member members[STACK_MEMBERS];
    int top = lua_gettop(e->L);
    size_t n = 0;
    enum status status;

    if (place->depth > STACK_DEPTH ||
        !lua_checkstack(e->L, 2 * STACK_MEMBERS + 8))
        return encode_large_object(e, index, place);
    lua_pushnil(e->L);
    while (lua_next(e->L, index) != 0) {
        if (n == STACK_MEMBERS) {
            lua_settop(e->L, top);
            return encode_large_object(e, index, place);
        }
        status = take_key(e, -2, &members[n], place->up);
        if (status != STATUS_OK)
            return status;
        members[n++].value = lua_gettop(e->L);
        lua_pushvalue(e->L, -2);
    }
    status = write_members(e, index, members, n, place);
    if (status == STATUS_OK)
        lua_settop(e->L, top);
    return status;
}

/* Whether an untagged table is an array: it has a first key, a number. */
static bool looks_like_array(struct encoder *e, int index)
{
    bool number;

    lua_pushnil(e->L);
    if (lua_next(e->L, index) == 0)
        return false;
    number = lua_type(e->L, -2) == LUA_TNUMBER;
    lua_pop(e->L, 2);
    return number;
}

static enum status refuse_metatable(struct encoder *e,
                                    const struct json_place *place)
{
    json_place_path(place, e->root, e->path);
    return diag_set(e->diag, STATUS_INVALID,
                    "%s has a metatable, which JSON cannot keep", e->path);
}

static enum status encode_table(struct encoder *e, int index,
                                const struct json_place *up)
{
    struct json_place place = {
        .up = up,
        .table = lua_topointer(e->L, index),
        .depth = up != NULL ? up->depth + 1 : 1,
    };
    const void *tag = NULL;

    if (place.depth > JSON_DEPTH_MAX || !lua_checkstack(e->L, 8))
        return json_place_fail(NULL, e->root, e->diag,
                               "nested deeper than %d levels", JSON_DEPTH_MAX);
    for (const struct json_place *p = up; p != NULL; p = p->up)
        if (p->table == place.table)
            return json_place_fail(up, e->root, e->diag,
                                   "a table that contains itself");
    if (e->wanted == place.table) {
        json_place_path(up, e->root, e->path);
        return STATUS_INVALID;
    }
    if (e->tree && !table_set_add(&e->tags->seen, place.table)) {
        e->again = place.table;
        json_place_path(up, e->root, e->path);
        return STATUS_INVALID;
    }
    if (lua_getmetatable(e->L, index)) {
        tag = lua_topointer(e->L, -1);
        lua_pop(e->L, 1);
        if (tag != e->tags->array && tag != e->tags->object)
            return refuse_metatable(e, up);
    }
    if (tag == e->tags->array ||
        (tag != e->tags->object && looks_like_array(e, index)))
        return encode_array(e, index, &place);
    return encode_object(e, index, &place);
}

static enum status encode_value(struct encoder *e, int index,
                                const struct json_place *up)
{
    switch (lua_type(e->L, index)) {
    case LUA_TSTRING:
        return encode_string(e, index, up);
    case LUA_TNUMBER:
        return encode_number(e, index, up);
    case LUA_TTABLE:
        return encode_table(e, index, up);
    case LUA_TBOOLEAN:
        buffer_append_string(e->out,
                             lua_toboolean(e->L, index) ? "true" : "false");
        return STATUS_OK;
    case LUA_TNIL:
        buffer_append(e->out, "null", 4);
        return STATUS_OK;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(e->L, index) == NULL) {
            buffer_append(e->out, "null", 4);
            return STATUS_OK;
        }
        break;
    case INT64_CDATA:
        return encode_cdata(e, index, up);
    default:
        break;
    }
    return json_place_fail(up, e->root, e->diag,
                           "a %s cannot be written as JSON",
                           lua_typename(e->L, lua_type(e->L, index)));
}

/* Says at which two places the table is: a second walk, in the same order,
 * comes to the first of them. */
static enum status refuse_alias(struct encoder *e, int index)
{
    struct encoder walk = *e;

    walk.tree = false;
    walk.wanted = e->again;
    (void)encode_value(&walk, index, NULL);
    return diag_set(e->diag, STATUS_INVALID,
                    "%s is the same table as %s; copy it", e->path, walk.path);
}

static enum status encode(lua_State *L, int index, bool tree, const char *root,
                          struct buffer *out, struct diag *diag)
{
    struct encoder e; /* filled by hand, so that the path costs nothing */
    int top = lua_gettop(L);
    size_t len = out->len;
    enum status status;

    if (!lua_checkstack(L, 8))
        return diag_set(diag, STATUS_INVALID, "%s: Lua stack overflow", root);
    if (index < 0 && index > LUA_REGISTRYINDEX)
        index += top + 1;
    e.L = L;
    e.out = out;
    e.root = root;
    e.diag = diag;
    e.tags = json_tags_get(L);
    e.tree = tree;
    e.again = e.wanted = NULL;
    table_set_clear(&e.tags->seen);
    status = encode_value(&e, index, NULL);
    if (status == STATUS_OK)
        return STATUS_OK;
    lua_settop(L, top);
    if (e.again != NULL) {
        status = refuse_alias(&e, index);
        lua_settop(L, top);
    }
    if (out->data != NULL) {
        out->len = len;
        out->data[len] = '\0';
    }
    return status;
}

enum status json_codec_encode(lua_State *L, int index, const char *root,
                              struct buffer *out, struct diag *diag)
{
    return encode(L, index, false, root, out, diag);
}

enum status json_codec_encode_tree(lua_State *L, int index, const char *root,
                                   struct buffer *out, struct diag *diag)
{
    return encode(L, index, true, root, out, diag);
}
