#include "cli/output.h"

#include "base/clock.h"
#include "base/memory.h"

#include <inttypes.h>

#define GAP "  " /* between columns */

/* Length in bytes of the character at `data`, whose text is valid. */
static size_t character_length(const char *data)
{
    unsigned char c = (unsigned char)data[0];

    if (c < 0x80)
        return 1;
    if (c < 0xe0)
        return 2;
    return c < 0xf0 ? 3 : 4;
}

/* Length of the valid character at the start of `t`, 0 when there is none. */
static size_t valid_character(struct text t)
{
    size_t len;

    if ((unsigned char)t.data[0] < 0x80)
        return 1;
    if ((unsigned char)t.data[0] < 0xc2)
        return 0;
    len = character_length(t.data);
    if (len > t.len || !text_utf8_valid((struct text){t.data, len}))
        return 0;
    return len;
}

static uint32_t code_point(const char *data, size_t len)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)data[0] & mask[len];

    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)data[i] & 0x3f);
    return code;
}

/* The ranges that matter for columns: combining marks and joiners take no
 * room, East Asian wide characters and pictures two columns. */
static size_t character_width(uint32_t code)
{
    static const struct {
        uint32_t first, last;
        size_t width;
    } ranges[] = {
        {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},
        {0x064b, 0x065f, 0},   {0x1100, 0x115f, 2},   {0x1ab0, 0x1aff, 0},
        {0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},
        {0x2e80, 0x303e, 2},   {0x3041, 0x4dbf, 2},   {0x4e00, 0xa4cf, 2},
        {0xa960, 0xa97f, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},
        {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},
        {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2},
        {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };

    if (code < 0x300)
        return 1;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].width;
    }
    return 1;
}

size_t output_width(struct text text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len;) {
        size_t len = valid_character(
            (struct text){text.data + i, text.len - i});

        if (len == 0) {
            width++;
            i++;
            continue;
        }
        width += character_width(code_point(text.data + i, len));
        i += len;
    }
    return width;
}

/* C0, DEL, C1, and the marks that turn the direction of a line. */
static bool drives_terminal(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) ||
           (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

void output_safe(struct buffer *out, struct text text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = valid_character(
            (struct text){text.data + i, text.len - i});
        uint32_t code;

        if (len == 0) {
            buffer_printf(out, "\\x%02x", (unsigned char)text.data[i]);
            i++;
            continue;
        }
        code = code_point(text.data + i, len);
        if (code == '\n')
            buffer_append_string(out, "\\n");
        else if (code == '\t')
            buffer_append_string(out, "\\t");
        else if (drives_terminal(code))
            buffer_printf(out, "\\u%04" PRIx32, code);
        else
            buffer_append(out, text.data + i, len);
        i += len;
    }
}

void output_table_begin(struct output_table *table, const char *const *headings,
                        bool color)
{
    *table = (struct output_table){.no_color = !color};
    while (headings[table->ncolumns] != NULL)
        table->ncolumns++;
    table->right = mem_alloc(table->ncolumns * sizeof(*table->right));
    for (size_t i = 0; i < table->ncolumns; i++) {
        table->right[i] = headings[i][0] == '>';
        output_cell_string(table, headings[i] + (table->right[i] ? 1 : 0));
    }
}

void output_cell(struct output_table *table, struct text text)
{
    if (table->ncells == table->capacity) {
        table->capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        table->cells = mem_grow(table->cells, table->capacity,
                                sizeof(*table->cells));
    }
    table->cells[table->ncells] = BUFFER_EMPTY;
    output_safe(&table->cells[table->ncells++], text);
}

void output_cell_string(struct output_table *table, const char *string)
{
    output_cell(table, text_of(string));
}

void output_cell_int64(struct output_table *table, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRId64, value);
    output_cell_string(table, digits);
}

size_t output_table_rows(const struct output_table *table)
{
    return (table->ncells + table->ncolumns - 1) / table->ncolumns - 1;
}

static void print_row(const struct output_table *table, size_t row,
                      const size_t *widths, FILE *out)
{
    bool bold = row == 0 && !table->no_color;

    for (size_t column = 0; column < table->ncolumns; column++) {
        struct text cell = buffer_text(
            &table->cells[row * table->ncolumns + column]);
        int blanks = (int)(widths[column] - output_width(cell));
        bool last = column + 1 == table->ncolumns;

        if (column > 0)
            fputs(GAP, out);
        if (table->right[column])
            fprintf(out, "%*s", blanks, "");
        if (bold)
            fputs("\033[1m", out);
        fwrite(cell.data, 1, cell.len, out);
        if (bold)
            fputs("\033[0m", out);
        if (!table->right[column] && !last)
            fprintf(out, "%*s", blanks, "");
    }
    fputc('\n', out);
}

void output_table_end(struct output_table *table, FILE *out)
{
    size_t *widths = mem_alloc(table->ncolumns * sizeof(*widths));

    while (table->ncells % table->ncolumns != 0)
        output_cell(table, TEXT_LITERAL(""));
    for (size_t i = 0; i < table->ncells; i++) {
        size_t width = output_width(buffer_text(&table->cells[i]));

        if (width > widths[i % table->ncolumns])
            widths[i % table->ncolumns] = width;
    }
    for (size_t row = 0; row < table->ncells / table->ncolumns; row++)
        print_row(table, row, widths, out);

    mem_free(widths);
    output_table_free(table);
}

void output_table_free(struct output_table *table)
{
    for (size_t i = 0; i < table->ncells; i++)
        buffer_free(&table->cells[i]);
    mem_free(table->cells);
    mem_free(table->right);
    *table = (struct output_table){.ncolumns = 0};
}

void output_field(FILE *out, int width, const char *name, struct text value)
{
    struct buffer safe = BUFFER_EMPTY;

    if (value.data == NULL)
        return;
    output_safe(&safe, value);
    fprintf(out, "%-*s", width, name);
    fwrite(buffer_text(&safe).data, 1, safe.len, out);
    fputc('\n', out);
    buffer_free(&safe);
}

void output_field_id(FILE *out, int width, const char *name,
                     const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(id, text);
    output_field(out, width, name, text_of(text));
}

void output_field_time(FILE *out, int width, const char *name, int64_t time_us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    output_field(out, width, name, text_of(text));
}

void output_grouped(struct buffer *out, int64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRId64, value);
    int sign = digits[0] == '-' ? 1 : 0;

    for (int i = 0; i < len; i++) {
        if (i > sign && (len - i) % 3 == 0)
            buffer_append_char(out, ',');
        buffer_append_char(out, digits[i]);
    }
}

void output_duration(struct buffer *out, int64_t us)
{
    int64_t seconds = us / CLOCK_SECOND;

    if (us < 0)
        buffer_append_string(out, "0 s");
    else if (us < CLOCK_SECOND)
        buffer_printf(out, "%" PRId64 " ms", us / 1000);
    else if (seconds < 60)
        buffer_printf(out, "%.1f s", (double)us / (double)CLOCK_SECOND);
    else if (seconds < 3600)
        buffer_printf(out, "%" PRId64 " min %" PRId64 " s", seconds / 60,
                      seconds % 60);
    else if (seconds < 86400)
        buffer_printf(out, "%" PRId64 " h %" PRId64 " min", seconds / 3600,
                      seconds % 3600 / 60);
    else
        buffer_printf(out, "%" PRId64 " d %" PRId64 " h", seconds / 86400,
                      seconds % 86400 / 3600);
}
