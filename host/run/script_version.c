#include "run/script_version.h"

#include "base/json.h"
#include "base/json_member.h"

/* The name of a file may hold any bytes. */
static const char *clean_name(struct arena *arena, const char *name)
{
    size_t size = strlen(name) + 1;
    char *clean = arena_alloc(arena, size);

    text_clean(text_of(name), clean, size);
    return clean;
}

void script_version_of(const struct script *script,
                       struct script_version *version)
{
    const struct source_digest *files = script_files(script, &version->nfiles);
    const struct declaration *declarations = script_declarations(
        script, &version->nconsumers);
    struct arena *arena = &version->arena;

    memcpy(version->hash, script_version(script), sizeof(version->hash));
    version->files = arena_alloc(arena, (version->nfiles + 1) * sizeof(*files));
    for (size_t i = 0; i < version->nfiles; i++) {
        version->files[i] = files[i];
        version->files[i].file = clean_name(arena, files[i].file);
    }
    version->consumers = arena_alloc(arena, (version->nconsumers + 1) *
                                                sizeof(*version->consumers));
    for (size_t i = 0; i < version->nconsumers; i++)
        version->consumers[i] = (struct script_version_consumer){
            .kind = declaration_kind_word(declarations[i].kind),
            .name = arena_string(arena, text_of(declarations[i].name)),
            .fingerprint = declarations[i].fingerprint,
        };
}

void script_version_free(struct script_version *version)
{
    arena_free(&version->arena);
    *version = (struct script_version){.nfiles = 0};
}

const struct script_version_consumer *
script_version_consumer(const struct script_version *version, const char *name)
{
    for (size_t i = 0; i < version->nconsumers; i++)
        if (strcmp(version->consumers[i].name, name) == 0)
            return &version->consumers[i];
    return NULL;
}

/* --- what differs
 * ------------------------------------------------------------------------- */

static void add_change(struct buffer *out, size_t *count, const char *kind,
                       const char *name, const char *what)
{
    if ((*count)++ > 0)
        buffer_append_string(out, ", ");
    if (kind != NULL)
        buffer_printf(out, "%s '%s' %s", kind, name, what);
    else
        buffer_printf(out, "%s %s", name, what);
}

/* Both are sorted. */
static size_t add_files(const struct script_version *from,
                        const struct script_version *to, struct buffer *out)
{
    size_t a = 0, b = 0, count = 0;

    while (a < from->nfiles || b < to->nfiles) {
        const struct source_digest *old = &from->files[a];
        const struct source_digest *new = &to->files[b];
        int order = a == from->nfiles ? 1
                    : b == to->nfiles ? -1
                                      : strcmp(old->file, new->file);

        if (order < 0)
            add_change(out, &count, NULL, old->file, "removed");
        else if (order > 0)
            add_change(out, &count, NULL, new->file, "added");
        else if (strcmp(old->digest, new->digest) != 0)
            add_change(out, &count, NULL, new->file, "changed");
        a += order <= 0;
        b += order >= 0;
    }
    return count;
}

static void add_consumers(const struct script_version *from,
                          const struct script_version *to, struct buffer *out)
{
    size_t count = 0;

    for (size_t i = 0; i < to->nconsumers; i++) {
        const struct script_version_consumer *new = &to->consumers[i];
        const struct script_version_consumer *old = script_version_consumer(
            from, new->name);

        if (old == NULL)
            add_change(out, &count, new->kind, new->name, "added");
        else if (!fingerprint_equal(&old->fingerprint, &new->fingerprint))
            add_change(out, &count, new->kind, new->name, "changed");
    }
    for (size_t i = 0; i < from->nconsumers; i++)
        if (script_version_consumer(to, from->consumers[i].name) == NULL)
            add_change(out, &count, from->consumers[i].kind,
                       from->consumers[i].name, "removed");
}

void script_version_changes(const struct script_version *from,
                            const struct script_version *to, struct buffer *out)
{
    static const struct script_version nothing;
    struct buffer consumers = BUFFER_EMPTY;
    size_t files;

    if (from == NULL)
        from = &nothing;
    buffer_append_string(out, "");
    files = add_files(from, to, out);
    add_consumers(from, to, &consumers);
    if (consumers.len > 0)
        buffer_printf(out, "%s%s", files > 0 ? "; " : "", consumers.data);
    buffer_free(&consumers);
}

/* --- as JSON
 * -------------------------------------------------------------------------- */

/* What keeps no history has none. */
static bool has_fingerprint(const struct script_version_consumer *consumer)
{
    return consumer->fingerprint.part[0][0] != '\0';
}

/* {"hash":"...","files":{"handlers/a.lua":"DIGEST"},"consumers":{"NAME":"KIND
 * SOURCES KEY SHAPE CODE","LISTENER":"KIND"}} */
void script_version_write(const struct script_version *version,
                          struct buffer *out)
{
    struct buffer line = BUFFER_EMPTY;
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "hash", version->hash);
    json_write_key(out, &first, "files");
    buffer_append_char(out, '{');
    first = true;
    for (size_t i = 0; i < version->nfiles; i++) {
        json_member_string(out, &first, version->files[i].file,
                           version->files[i].digest);
    }
    buffer_append_string(out, "},\"consumers\":{");
    first = true;
    for (size_t i = 0; i < version->nconsumers; i++) {
        const struct script_version_consumer *c = &version->consumers[i];

        buffer_clear(&line);
        buffer_append_string(&line, c->kind);
        for (int p = 0; p < FINGERPRINT_PARTS && has_fingerprint(c); p++)
            buffer_printf(&line, " %s", c->fingerprint.part[p]);
        json_member_text(out, &first, c->name, buffer_text(&line));
    }
    buffer_append_string(out, "}}");
    buffer_free(&line);
}

static bool take_text(struct json_value value, char *out, size_t size)
{
    struct buffer text = BUFFER_EMPTY;
    bool good = value.kind == JSON_STRING;

    if (good)
        json_decode_string(value, &text);
    good = good && text.len < size && memchr(text.data, '\0', text.len) == NULL;
    if (good)
        memcpy(out, buffer_text(&text).data, text.len + 1);
    buffer_free(&text);
    return good;
}

static bool take_file(struct script_version *version, struct text name,
                      struct json_value value)
{
    struct source_digest *file;

    version->files = arena_grow(&version->arena, version->files,
                                version->nfiles, sizeof(*version->files));
    file = &version->files[version->nfiles++];
    file->file = arena_string(&version->arena, name);
    return take_text(value, file->digest, sizeof(file->digest));
}

static bool take_consumer(struct script_version *version, struct text name,
                          struct json_value value)
{
    struct script_version_consumer *consumer;
    char line[sizeof(struct fingerprint) + 64];
    char *word, *rest;

    if (!take_text(value, line, sizeof(line)))
        return false;
    version->consumers = arena_grow(&version->arena, version->consumers,
                                    version->nconsumers,
                                    sizeof(*version->consumers));
    consumer = &version->consumers[version->nconsumers++];
    *consumer = (struct script_version_consumer){
        .name = arena_string(&version->arena, name)};
    word = strtok_r(line, " ", &rest);
    if (word == NULL)
        return false;
    consumer->kind = arena_string(&version->arena, text_of(word));
    word = strtok_r(NULL, " ", &rest);
    if (word == NULL)
        return true;
    for (int p = 0; p < FINGERPRINT_PARTS; p++) {
        char *part = consumer->fingerprint.part[p];

        if (word == NULL || strlen(word) > FINGERPRINT_PART_MAX)
            return false;
        memcpy(part, word, strlen(word) + 1);
        word = strtok_r(NULL, " ", &rest);
    }
    return word == NULL;
}

static bool take_all(struct script_version *version, struct json_value object,
                     bool (*take)(struct script_version *version,
                                  struct text name, struct json_value value))
{
    struct json_members members = json_members_of(object);
    struct buffer scratch = BUFFER_EMPTY;
    struct json_value value;
    struct text name;
    bool good = object.kind == JSON_OBJECT;

    while (good && json_members_next(&members, &scratch, &name, &value))
        good = take(version, name, value);
    buffer_free(&scratch);
    return good;
}

static bool take_member(struct script_version *version, struct text name,
                        struct json_value value)
{
    if (text_equal(name, TEXT_LITERAL("hash")))
        return take_text(value, version->hash, sizeof(version->hash));
    if (text_equal(name, TEXT_LITERAL("files")))
        return take_all(version, value, take_file);
    if (text_equal(name, TEXT_LITERAL("consumers")))
        return take_all(version, value, take_consumer);
    return false;
}

enum status script_version_read(struct text json,
                                struct script_version *version,
                                struct diag *diag)
{
    enum status status = json_check(json, NULL, diag);

    if (status == STATUS_OK &&
        !take_all(version, json_first(json), take_member))
        status = diag_set(diag, STATUS_INVALID,
                          "the description of a version of the scripts is "
                          "damaged");
    if (status != STATUS_OK)
        script_version_free(version);
    return status;
}
