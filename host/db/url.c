#include "db/url.h"

#include <string.h>
#include <strings.h>

#define FILE_PREFIX   "sqlite:"
#define FILE_MEMORY   ":memory:"
#define PASSWORD_MASK "***"

static const struct {
    const char *prefix;
    const char *dialect;
    bool single_process;
} forms[] = {
    {FILE_PREFIX, "sqlite", true},      {"postgresql://", "postgres", false},
    {"postgres://", "postgres", false}, {"mysql://", "mysql", false},
    {"mariadb://", "mysql", false},
};

static int form_of(const char *url)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strncmp(url, forms[i].prefix, strlen(forms[i].prefix)) == 0)
            return (int)i;
    }
    return -1;
}

const char *db_url_dialect(const char *url)
{
    int form = form_of(url);

    return form >= 0 ? forms[form].dialect : NULL;
}

bool db_url_single_process(const char *url)
{
    int form = form_of(url);

    return form >= 0 && forms[form].single_process;
}

bool db_url_is_memory(const char *url)
{
    return strcmp(url, FILE_PREFIX FILE_MEMORY) == 0;
}

void db_url_resolve(const char *url, const char *folder, struct buffer *out)
{
    const char *path = url + strlen(FILE_PREFIX);

    if (strncmp(url, FILE_PREFIX, strlen(FILE_PREFIX)) != 0 || path[0] == '/' ||
        path[0] == '\0' || strcmp(path, FILE_MEMORY) == 0 ||
        strncmp(path, "file:", 5) == 0 || strcmp(folder, ".") == 0 ||
        folder[0] == '\0') {
        buffer_append_string(out, url);
        return;
    }
    buffer_printf(out, FILE_PREFIX "%s/%s", folder, path);
}

/* The value of `password=` in the query part, in any case. */
static const char *query_password(const char *query)
{
    static const char name[] = "password=";

    for (const char *at = query; *at != '\0'; at++) {
        if ((at[0] == '?' || at[0] == '&') &&
            strncasecmp(at + 1, name, sizeof(name) - 1) == 0)
            return at + sizeof(name);
    }
    return NULL;
}

static void mask_query(const char *from, struct buffer *out)
{
    const char *value;

    while ((value = query_password(from)) != NULL) {
        buffer_append(out, from, (size_t)(value - from));
        buffer_append_string(out, PASSWORD_MASK);
        from = value + strcspn(value, "&");
    }
    buffer_append_string(out, from);
}

void db_url_mask(const char *url, struct buffer *out)
{
    const char *start = strstr(url, "://");
    const char *end;
    const char *at = NULL;
    const char *colon;

    if (start == NULL) {
        buffer_append_string(out, url);
        return;
    }
    start += 3;
    end = start + strcspn(start, "/?");
    /* a password with @ in it belongs in front of the last one */
    for (const char *c = start; c < end; c++) {
        if (*c == '@')
            at = c;
    }
    colon = at != NULL ? memchr(start, ':', (size_t)(at - start)) : NULL;
    if (colon == NULL) {
        buffer_append(out, url, (size_t)(end - url));
        mask_query(end, out);
        return;
    }
    buffer_append(out, url, (size_t)(colon + 1 - url));
    buffer_append_string(out, PASSWORD_MASK);
    buffer_append(out, at, (size_t)(end - at));
    mask_query(end, out);
}
