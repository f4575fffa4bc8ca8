#include "script/source_bundle.h"

#include "script/source_set_parts.h"

/*
 * MAGIC, files (count, each: flags, name, content, count of names it requires,
 * each), names of require (count, each: name, number of the file from 1, or 0).
 * Counts, numbers and lengths have 4 bytes, little-endian.
 */
#define MAGIC TEXT_LITERAL("MTB1")

enum file_flag {
    FILE_DECLARES = 1 << 0,
    FILE_OTHER = 1 << 1,
    FILE_LATE = 1 << 2,
    FILE_FLAGS = FILE_DECLARES | FILE_OTHER | FILE_LATE,
};

/* --- writing
 * --------------------------------------------------------------------------
 */

static void put_number(struct buffer *out, size_t number)
{
    for (int i = 0; i < 4; i++)
        buffer_append_char(out, (char)(number >> 8 * i & 0xff));
}

static void put_text(struct buffer *out, struct text text)
{
    put_number(out, text.len);
    buffer_append_text(out, text);
}

static void put_file(struct buffer *out, const struct source_file *file)
{
    size_t count = 0;

    put_number(out, (file->declares ? FILE_DECLARES : 0u) |
                        (file->other ? FILE_OTHER : 0u) |
                        (file->late ? FILE_LATE : 0u));
    put_text(out, text_of(file->chunk));
    put_text(out, file->text);
    for (const struct wanted *w = file->wanted; w != NULL; w = w->next)
        count++;
    put_number(out, count);
    for (const struct wanted *w = file->wanted; w != NULL; w = w->next)
        put_text(out, text_of(w->module));
}

/* From 1; 0 for no file. */
static size_t number_of(const struct source_set *set,
                        const struct source_file *file)
{
    size_t number = 1;

    if (file == NULL)
        return 0;
    for (const struct source_file *f = set->files; f != NULL && f != file;
         f = f->next)
        number++;
    return number;
}

void source_bundle_write(const struct source_set *set, struct buffer *out)
{
    size_t count = 0;

    buffer_append_text(out, MAGIC);
    for (const struct source_file *f = set->files; f != NULL; f = f->next)
        count++;
    put_number(out, count);
    for (const struct source_file *f = set->files; f != NULL; f = f->next)
        put_file(out, f);
    count = 0;
    for (const struct module *m = set->modules; m != NULL; m = m->next)
        count++;
    put_number(out, count);
    for (const struct module *m = set->modules; m != NULL; m = m->next) {
        put_text(out, text_of(m->name));
        put_number(out, number_of(set, m->file));
    }
}

/* --- reading
 * --------------------------------------------------------------------------
 */

/* What is left. A read past its end makes it bad, and gives nothing. */
struct cursor {
    struct text left;
    bool bad;
};

static size_t take_number(struct cursor *cursor)
{
    size_t number = 0;

    if (cursor->left.len < 4) {
        cursor->bad = true;
        return 0;
    }
    for (int i = 0; i < 4; i++)
        number |= (size_t)(unsigned char)cursor->left.data[i] << 8 * i;
    cursor->left.data += 4;
    cursor->left.len -= 4;
    return number;
}

static struct text take_text(struct cursor *cursor)
{
    size_t len = take_number(cursor);
    struct text text = {cursor->left.data, len};

    if (cursor->bad || len > cursor->left.len) {
        cursor->bad = true;
        return TEXT_LITERAL("");
    }
    cursor->left.data += len;
    cursor->left.len -= len;
    return text;
}

static struct text take_name(struct cursor *cursor)
{
    struct text name = take_text(cursor);

    if (name.len == 0 || memchr(name.data, '\0', name.len) != NULL)
        cursor->bad = true;
    return name;
}

static struct source_file *read_file(struct cursor *cursor,
                                     struct source_set *set)
{
    size_t flags = take_number(cursor);
    struct text name = take_name(cursor);
    struct text content = take_text(cursor);
    size_t count = take_number(cursor);
    struct source_file *file;
    const char *chunk;

    if (cursor->bad || (flags & ~(size_t)FILE_FLAGS) != 0) {
        cursor->bad = true;
        return NULL;
    }
    chunk = arena_string(&set->arena, name);
    if ((flags & FILE_OTHER) != 0)
        source_set_add_other(set, chunk, content);
    else
        source_set_add(set, chunk, NULL, content);
    file = set->files;
    cursor->bad = strcmp(file->chunk, chunk) != 0; /* a name comes once */
    file->declares = (flags & FILE_DECLARES) != 0;
    file->late = (flags & FILE_LATE) != 0;
    for (size_t i = 0; i < count && !cursor->bad; i++) {
        struct text module = take_name(cursor);

        if (!cursor->bad)
            source_set_require(set, chunk, arena_string(&set->arena, module));
    }
    return file;
}

static void read_modules(struct cursor *cursor, struct source_set *set,
                         struct source_file *const *files, size_t nfiles)
{
    size_t count = take_number(cursor);

    for (size_t i = 0; i < count && !cursor->bad; i++) {
        struct text name = take_name(cursor);
        size_t number = take_number(cursor);

        if (cursor->bad || number > nfiles) {
            cursor->bad = true;
            return;
        }
        (void)source_set_add_module(set, arena_string(&set->arena, name),
                                    number > 0 ? files[number - 1] : NULL);
    }
}

enum status source_bundle_read(struct text bytes, struct source_set **set_out,
                               struct diag *diag)
{
    struct cursor cursor = {bytes, false};
    struct source_set *set = source_set_new();
    struct source_file **files = NULL;
    size_t count, got = 0;

    cursor.bad = bytes.len < MAGIC.len ||
                 memcmp(bytes.data, MAGIC.data, MAGIC.len) != 0;
    if (!cursor.bad) {
        cursor.left.data += MAGIC.len;
        cursor.left.len -= MAGIC.len;
    }
    count = cursor.bad ? 0 : take_number(&cursor);
    while (got < count && !cursor.bad) {
        files = arena_grow(&set->arena, files, got,
                           sizeof(struct source_file *));
        files[got++] = read_file(&cursor, set);
    }
    if (!cursor.bad)
        read_modules(&cursor, set, files, got);
    if (cursor.bad || cursor.left.len > 0) {
        source_set_free(set);
        return diag_set(diag, STATUS_INVALID,
                        "the bytes of the scripts are damaged");
    }
    set->sealed = true;
    *set_out = set;
    return STATUS_OK;
}
