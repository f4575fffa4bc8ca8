#include "db/catalog.h"

#include "base/memory.h"
#include "db/sql_files.h"

#include <assert.h>

#define NAME_MAX_LEN 63

struct catalog {
    struct db_sql *statements; /* SQL_COUNT of them */
    char **texts;              /* what they point to */
};

static const struct sql_dialect *dialect_of(const char *name)
{
    for (const struct sql_dialect *at = sql_dialects; at->name != NULL; at++) {
        if (strcmp(at->name, name) == 0)
            return at;
    }
    return NULL;
}

/* --- names and placeholders ---------------------------------------------- */

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static enum status check_value(const struct catalog_name *name,
                               struct diag *diag)
{
    const char *value = name->value;
    size_t len = 0;

    while (is_lower(value[len]) || (value[len] >= 'A' && value[len] <= 'Z') ||
           (len > 0 && is_digit(value[len])))
        len++;
    if (len > 0 && len <= NAME_MAX_LEN && value[len] == '\0')
        return STATUS_OK;
    return diag_set(diag, STATUS_CONFIG,
                    "\"%s\" cannot stand for ${%s}: use letters, digits and "
                    "underscores, at most %d of them",
                    value, name->placeholder, NAME_MAX_LEN);
}

/* Index of the name, or -1. */
static int find_name(const struct catalog_name *names, struct text wanted)
{
    for (int i = 0; names[i].placeholder != NULL; i++) {
        if (text_equal(text_of(names[i].placeholder), wanted))
            return i;
    }
    return -1;
}

/* Length of the placeholder `${name}` at `at`, 0 when it is none. */
static size_t placeholder_at(const char *at, const char *end, struct text *name)
{
    const char *c = at + 2;

    if (end - at < 4 || at[0] != '$' || at[1] != '{')
        return 0;
    while (c < end && (is_lower(*c) || is_digit(*c)))
        c++;
    if (c == end || *c != '}')
        return 0;
    *name = (struct text){at + 2, (size_t)(c - at - 2)};
    return (size_t)(c + 1 - at);
}

static enum status bad_placeholder(const char *at, const char *end,
                                   struct diag *diag)
{
    const char *close = at;

    while (close < end && *close != '}' && *close != '\n')
        close++;
    if (close == end || *close != '}')
        return diag_set(diag, STATUS_CONFIG,
                        "a placeholder that begins with ${ does not end");
    return diag_set(diag, STATUS_CONFIG, "unknown placeholder %.*s",
                    (int)(close + 1 - at), at);
}

enum status catalog_fill(struct text text, const struct catalog_name *names,
                         struct buffer *out, struct diag *diag)
{
    const char *at = text.data;
    const char *end = text.data + text.len;

    while (at < end) {
        const char *sign = memmem(at, (size_t)(end - at), "${", 2);
        struct text name = TEXT_NONE;
        enum status status;
        size_t len;
        int index;

        if (sign == NULL)
            sign = end;
        buffer_append(out, at, (size_t)(sign - at));
        if (sign == end)
            break;
        len = placeholder_at(sign, end, &name);
        index = len > 0 ? find_name(names, name) : -1;
        if (index < 0)
            return bad_placeholder(sign, end, diag);
        status = check_value(&names[index], diag);
        if (status != STATUS_OK)
            return status;
        buffer_append_string(out, names[index].value);
        at = sign + len;
    }
    return STATUS_OK;
}

static bool mentions(struct text text, const char *placeholder)
{
    struct buffer sign = BUFFER_EMPTY;
    bool found;

    if (text.data == NULL)
        return false;

    buffer_printf(&sign, "${%s}", placeholder);
    found = memmem(text.data, text.len, sign.data, sign.len) != NULL;
    buffer_free(&sign);
    return found;
}

static bool name_is_used(const struct sql_dialect *dialect,
                         const char *placeholder)
{
    for (size_t i = 0; dialect->statements[i].name != NULL; i++) {
        if (mentions(dialect->statements[i].text, placeholder))
            return true;
    }
    for (size_t i = 0; i < dialect->nscripts; i++) {
        if (mentions(dialect->scripts[i].text, placeholder))
            return true;
    }
    return false;
}

static enum status check_used(const struct sql_dialect *dialect,
                              const struct catalog_name *names,
                              struct diag *diag)
{
    for (size_t i = 0; names[i].placeholder != NULL; i++) {
        if (!name_is_used(dialect, names[i].placeholder))
            return diag_set(diag, STATUS_CONFIG,
                            "no statement or script of sql/%s uses ${%s}",
                            dialect->name, names[i].placeholder);
    }
    return STATUS_OK;
}

/* --- statements ---------------------------------------------------------- */

/* The comment lines at the top describe the parameters to a reader; the
 * database need not parse them with every preparation. */
static struct text without_comment(struct text text)
{
    const char *at = text.data;
    const char *end = text.data + text.len;

    while (at < end) {
        const char *line = at;

        while (line < end && (*line == ' ' || *line == '\t' || *line == '\r'))
            line++;
        if (line < end && *line != '\n' &&
            !(end - line >= 2 && line[0] == '-' && line[1] == '-'))
            break;
        at = memchr(line, '\n', (size_t)(end - line));
        at = at != NULL ? at + 1 : end;
    }
    while (end > at && (end[-1] == '\n' || end[-1] == ' ' || end[-1] == ';' ||
                        end[-1] == '\r' || end[-1] == '\t'))
        end--;
    return (struct text){at, (size_t)(end - at)};
}

static enum status fill_statement(struct catalog *catalog,
                                  const struct sql_dialect *dialect, size_t i,
                                  const struct catalog_name *names,
                                  struct diag *diag)
{
    const struct sql_file *file = &dialect->statements[i];
    struct buffer out = BUFFER_EMPTY;
    enum status status;

    if (file->text.data == NULL) /* not for this dialect */
        return STATUS_OK;

    status = catalog_fill(without_comment(file->text), names, &out, diag);
    if (status == STATUS_OK && out.len == 0)
        status = diag_set(diag, STATUS_CONFIG, "there is no statement");
    if (status != STATUS_OK) {
        buffer_free(&out);
        (void)diag_wrap(diag, "sql/%s/statement/%s.sql", dialect->name,
                        file->name);
        return status;
    }
    catalog->texts[i] = out.data;
    catalog->statements[i] = db_sql_make(buffer_text(&out), DB_HOST);
    return STATUS_OK;
}

enum status catalog_open(const char *dialect, const struct catalog_name *names,
                         struct catalog **catalog, struct diag *diag)
{
    const struct sql_dialect *found = dialect_of(dialect);
    struct catalog *made;
    enum status status;

    *catalog = NULL;
    if (found == NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "this build has no statements for the dialect \"%s\"",
                        dialect);
    status = check_used(found, names, diag);
    if (status != STATUS_OK)
        return status;
    made = mem_alloc(sizeof(*made));
    /* one more, because there may be none */
    made->statements = mem_alloc((SQL_COUNT + 1) * sizeof(*made->statements));
    made->texts = mem_alloc((SQL_COUNT + 1) * sizeof(*made->texts));
    for (size_t i = 0; status == STATUS_OK && found->statements[i].name != NULL;
         i++)
        status = fill_statement(made, found, i, names, diag);
    if (status != STATUS_OK) {
        catalog_close(made);
        return status;
    }
    *catalog = made;
    return STATUS_OK;
}

void catalog_close(struct catalog *catalog)
{
    if (catalog == NULL)
        return;
    for (size_t i = 0; i < SQL_COUNT; i++)
        mem_free(catalog->texts[i]);
    mem_free(catalog->texts);
    mem_free(catalog->statements);
    mem_free(catalog);
}

const struct db_sql *catalog_sql(const struct catalog *catalog,
                                 enum sql_statement statement)
{
    assert(catalog->texts[statement] != NULL);
    return &catalog->statements[statement];
}

const struct catalog_script *catalog_scripts(const char *dialect, size_t *count)
{
    const struct sql_dialect *found = dialect_of(dialect);

    *count = found != NULL ? found->nscripts : 0;
    return found != NULL ? found->scripts : NULL;
}

struct text catalog_raw(const char *dialect, enum sql_statement statement)
{
    const struct sql_dialect *found = dialect_of(dialect);

    return found != NULL ? without_comment(found->statements[statement].text)
                         : TEXT_NONE;
}
