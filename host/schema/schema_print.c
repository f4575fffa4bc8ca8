#include "schema/schema.h"

#include "base/json_member.h"
#include "schema/fill.h"

#include <assert.h>

/* The output is plain SQL to people, to clients and to Flyway. Its comments
 * also make it a changelog of Liquibase: each script is a changeset, and what
 * a script's first line has behind this are the changeset's attributes. */
#define CHANGELOG  "-- liquibase formatted sql\n"
#define ATTRIBUTES "-- changeset attributes: "

struct print {
    struct buffer *out;
    const char *script;     /* its name */
    struct text attributes; /* of its changeset, may be empty */
};

/* Takes the line of attributes off the script. */
static struct text take_attributes(struct text *script)
{
    size_t skip = strlen(ATTRIBUTES);
    struct text line = {script->data, 0};
    const char *end;

    if (script->len < skip || memcmp(script->data, ATTRIBUTES, skip) != 0)
        return line;
    end = memchr(script->data, '\n', script->len);
    assert(end != NULL);
    line = (struct text){script->data + skip,
                         (size_t)(end - script->data) - skip};
    script->len -= (size_t)(end + 1 - script->data);
    script->data = end + 1;
    return line;
}

/* A script may say only why there is nothing to do. */
static bool has_statement(struct text script)
{
    const char *at = script.data;
    const char *end = at + script.len;

    while (at < end) {
        const char *line = at;

        at = memchr(at, '\n', (size_t)(end - at));
        at = at == NULL ? end : at + 1;
        if (line[0] != '\n' && (at - line < 2 || memcmp(line, "--", 2) != 0))
            return true;
    }
    return false;
}

static enum status print_one(void *arg, struct text filled, const char *table,
                             struct diag *diag)
{
    struct print *print = arg;
    struct buffer *out = print->out;

    (void)diag;
    buffer_printf(out, "\n-- changeset moontide:%s%s%s", print->script,
                  table != NULL ? "-" : "", table != NULL ? table : "");
    if (print->attributes.len > 0)
        buffer_append_char(out, ' ');
    buffer_append_text(out, print->attributes);
    buffer_append_char(out, '\n');
    buffer_append_text(out, filled);
    return STATUS_OK;
}

enum status schema_print(const char *dialect, const struct names *names,
                         struct buffer *out, struct diag *diag)
{
    size_t count = 0;
    const struct catalog_script *scripts = catalog_scripts(dialect, &count);

    if (scripts == NULL)
        return diag_set(diag, STATUS_USAGE,
                        "there are no schema scripts for the dialect \"%s\"",
                        dialect);
    buffer_append_string(out, CHANGELOG);
    for (size_t i = 0; i < count; i++) {
        struct text text = scripts[i].text;
        struct print print = {.out = out, .script = scripts[i].name};
        enum status status;

        print.attributes = take_attributes(&text);
        if (!has_statement(text))
            continue;
        if (names == NULL)
            status = print_one(&print, text, NULL, diag);
        else
            status = fill_each(text, names, print_one, &print, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

void schema_names(const struct names *names, bool json, struct buffer *out)
{
    char routine[FILL_ROUTINE_MAX + 1];
    bool first = true;

    fill_routine(names->fill[TABLE_EVENT_STORE].value, routine);
    if (json)
        buffer_append_char(out, '{');
    for (int id = 0; id <= TABLE_COUNT; id++) {
        struct catalog_name name = id < TABLE_COUNT
                                       ? names->fill[id]
                                       : (struct catalog_name){FILL_ROUTINE,
                                                               routine};

        if (json) {
            json_member_string(out, &first, name.placeholder, name.value);
        } else {
            buffer_printf(out, "%s=%s\n", name.placeholder, name.value);
        }
    }
    if (json)
        buffer_append_string(out, "}\n");
}
