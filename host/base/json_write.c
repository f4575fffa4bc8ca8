#include "base/json.h"

#include "base/json_scan.h"

static void write_escape(struct buffer *out, char c)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char letter = (unsigned char)c < 0x20 ? letters[(unsigned char)c] : c;

    if (letter == '\0') {
        buffer_printf(out, "\\u%04x", (unsigned)c);
        return;
    }
    buffer_append_char(out, '\\');
    buffer_append_char(out, letter);
}

void json_write_string(struct buffer *out, struct text t)
{
    const char *at = t.data;
    const char *end = text_end(t);

    buffer_reserve(out, t.len + 2);
    buffer_append_char(out, '"');
    while (at < end) {
        const char *special = json_scan_special(at, end);

        buffer_append(out, at, (size_t)(special - at));
        at = special;
        if (at < end)
            write_escape(out, *at++);
    }
    buffer_append_char(out, '"');
}

void json_write_key(struct buffer *out, bool *first, const char *key)
{
    if (!*first)
        buffer_append_char(out, ',');
    *first = false;
    json_write_string(out, text_of(key));
    buffer_append_char(out, ':');
}
