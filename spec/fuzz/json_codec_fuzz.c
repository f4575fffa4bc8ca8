/*
 * JSON codec under libFuzzer: whatever decodes must agree with the strict
 * checker, must encode, and what was encoded must read back to the same text.
 */
#include "script/json_codec.h"

#include "base/json.h"

#include <lauxlib.h>
#include <lualib.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(lua_State *L, struct text json)
{
    struct buffer first = BUFFER_EMPTY, second = BUFFER_EMPTY;
    struct diag diag;

    if (json_codec_decode(L, json, "value", &diag) != STATUS_OK)
        return;
    if (json_check(json, NULL, &diag) != STATUS_OK)
        abort(); /* the checker is the stricter one */
    if (json_codec_encode(L, 1, "value", &first, &diag) != STATUS_OK)
        abort();
    lua_settop(L, 0);
    if (json_check(buffer_text(&first), NULL, &diag) != STATUS_OK)
        abort();
    if (json_codec_decode(L, buffer_text(&first), "value", &diag) !=
            STATUS_OK ||
        json_codec_encode(L, 1, "value", &second, &diag) != STATUS_OK)
        abort();
    if (!text_equal(buffer_text(&first), buffer_text(&second)))
        abort();
    buffer_free(&first);
    buffer_free(&second);
}

/* A fresh state now and then, so that a fault of one input cannot hide. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    static int uses;

    if (L == NULL) {
        L = luaL_newstate();
        lua_pushcfunction(L, luaopen_base);
        lua_call(L, 0, 0);
        json_codec_register(L);
        lua_settop(L, 0);
    }
    round_trip(L, (struct text){(const char *)data, size});
    lua_settop(L, 0);
    if (++uses == 10000) {
        lua_close(L);
        L = NULL;
        uses = 0;
    }
    return 0;
}
