#include "cli/read_table.h"

#include "base/json.h"
#include "base/memory.h"

static bool is_number(enum field_type type)
{
    return type == FIELD_INTEGER || type == FIELD_DOUBLE ||
           type == FIELD_DECIMAL;
}

void read_table_begin(struct read_table *table,
                      const struct declaration *declaration, bool color)
{
    const char **headings = mem_alloc((declaration->nfields + 3) *
                                      sizeof(*headings));
    struct buffer *names = mem_alloc((declaration->nfields + 1) *
                                     sizeof(*names));

    *table = (struct read_table){.declaration = declaration,
                                 .scratch = BUFFER_EMPTY};
    headings[0] = "key";
    for (size_t i = 0; i < declaration->nfields; i++) {
        buffer_printf(&names[i], "%s%s",
                      is_number(declaration->fields[i].type) ? ">" : "",
                      declaration->fields[i].name);
        headings[i + 1] = names[i].data;
    }
    if (declaration->nfields == 0)
        headings[1] = "state";
    output_table_begin(&table->table, headings, color);
    for (size_t i = 0; i < declaration->nfields; i++)
        buffer_free(&names[i]);
    mem_free(names);
    mem_free(headings);
}

/* Member `name` of a state, as people read it: strings without quotes, a
 * missing member and null as nothing. */
static void member_text(struct read_table *table, struct json_value state,
                        const char *name, struct buffer *out)
{
    struct json_members members;
    struct json_value value;
    struct text key;

    if (state.kind != JSON_OBJECT)
        return;
    members = json_members_of(state);
    while (json_members_next(&members, &table->scratch, &key, &value)) {
        if (!text_equal(key, text_of(name)))
            continue;
        if (value.kind == JSON_STRING)
            json_decode_string(value, out);
        else if (value.kind != JSON_NULL)
            buffer_append_text(out, value.raw);
        return;
    }
}

void read_table_row(struct read_table *table, struct text key,
                    struct text state)
{
    struct json_value value = json_first(state);
    struct buffer cell = BUFFER_EMPTY;

    output_cell(&table->table, key);
    for (size_t i = 0; i < table->declaration->nfields; i++) {
        buffer_clear(&cell);
        member_text(table, value, table->declaration->fields[i].name, &cell);
        output_cell(&table->table, buffer_text(&cell));
    }
    if (table->declaration->nfields == 0)
        output_cell(&table->table, state);
    buffer_free(&cell);
}

void read_table_end(struct read_table *table, FILE *out)
{
    output_table_end(&table->table, out);
    buffer_free(&table->scratch);
}

void read_table_free(struct read_table *table)
{
    output_table_free(&table->table);
    buffer_free(&table->scratch);
}
