#include "script/json_place.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_SIZE  512
#define PATH_KEY_SIZE 64

static bool is_identifier(struct text key)
{
    if (key.len == 0 || isdigit((unsigned char)key.data[0]))
        return false;
    for (size_t i = 0; i < key.len; i++)
        if (!isalnum((unsigned char)key.data[i]) && key.data[i] != '_')
            return false;
    return true;
}

/* Writes the steps from the root down; returns the end. A path that gets too
 * long for the message loses its middle steps to "...". */
static size_t write_path(const struct json_place *place, char *out, size_t size)
{
    char key[PATH_KEY_SIZE];
    size_t at;
    int n;

    if (place == NULL)
        return strlen(out);
    at = write_path(place->up, out, size);
    if (at + PATH_KEY_SIZE + 8 > size)
        return at;
    if (place->index != 0) {
        n = snprintf(out + at, size - at, "[%lld]", (long long)place->index);
    } else {
        text_clean(place->key, key, sizeof(key));
        n = snprintf(out + at, size - at,
                     is_identifier(place->key) ? ".%s" : "[\"%s\"]", key);
    }
    at += (size_t)n;
    if (at + PATH_KEY_SIZE + 8 > size)
        at += (size_t)snprintf(out + at, size - at, "...");
    return at;
}

void json_place_path(const struct json_place *place, const char *root,
                     char out[JSON_PLACE_SIZE])
{
    snprintf(out, JSON_PLACE_SIZE, "%.100s", root);
    (void)write_path(place, out, JSON_PLACE_SIZE);
}

enum status json_place_fail(const struct json_place *place, const char *root,
                            struct diag *diag, const char *format, ...)
{
    char path[JSON_PLACE_SIZE], message[MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    json_place_path(place, root, path);
    return diag_set(diag, STATUS_INVALID, "%s: %s", path, message);
}
