#include "run/settings.h"
#include "run/settings_origins.h"

#include "base/json.h"
#include "base/json_member.h"

/* A JSON value as the configuration file would spell it: lists in braces. */
static void print_value(const char *value, struct buffer *out)
{
    size_t len = strlen(value);

    if (value[0] == '[')
        buffer_printf(out, "{%.*s}", (int)(len - 2), value + 1);
    else
        buffer_append(out, value, len);
}

void settings_print(const struct settings *settings, bool json,
                    struct buffer *out)
{
    bool first = true;

    if (json)
        buffer_append_char(out, '{');
    for (size_t i = 0; i < settings->origins->count; i++) {
        const struct settings_origin *origin = &settings->origins->items[i];

        if (json) {
            bool inner = true;

            if (!first)
                buffer_append_char(out, ',');
            first = false;
            json_write_string(out, text_of(origin->name));
            buffer_append_string(out, ":{");
            json_write_key(out, &inner, "value");
            buffer_append_string(out, origin->value);
            json_member_string(out, &inner, "origin", origin->where);
            buffer_append_char(out, '}');
            continue;
        }
        buffer_printf(out, "%s = ", origin->name);
        print_value(origin->value, out);
        buffer_printf(out, " (%s)\n", origin->where);
    }
    if (json)
        buffer_append_char(out, '}');
}
