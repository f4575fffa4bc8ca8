#include "schema/names.h"

#include "db/shape.h"

#include "base/memory.h"

#include <stdio.h>
#include <strings.h>

#define SHOWN_SIZE 96 /* of a faulty name inside a message */

struct table_row {
    const char *placeholder;
    const char *name;
};

static const struct table_row TABLES[TABLE_COUNT] = {
#define TABLE_ROW(id, placeholder, name, area) {placeholder, name},
    TABLE_MAP(TABLE_ROW)
#undef TABLE_ROW
};

/* Words that at least one database does not take as a bare table name. The
 * statements name tables without quotes, so that a name written in either
 * case is the same table everywhere. */
static const char *const RESERVED[] = {
    "add",
    "all",
    "alter",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "autoincrement",
    "between",
    "binary",
    "both",
    "by",
    "case",
    "cast",
    "change",
    "check",
    "collate",
    "column",
    "commit",
    "condition",
    "constraint",
    "convert",
    "create",
    "cross",
    "cursor",
    "database",
    "databases",
    "default",
    "deferrable",
    "delete",
    "desc",
    "describe",
    "distinct",
    "do",
    "drop",
    "else",
    "end",
    "escape",
    "except",
    "exists",
    "explain",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "function",
    "grant",
    "group",
    "groups",
    "having",
    "if",
    "in",
    "index",
    "initially",
    "inner",
    "insert",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "key",
    "keys",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "lock",
    "natural",
    "not",
    "nothing",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "option",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "procedure",
    "range",
    "rank",
    "read",
    "recursive",
    "references",
    "release",
    "rename",
    "replace",
    "returning",
    "right",
    "row",
    "rows",
    "schema",
    "select",
    "session_user",
    "set",
    "similar",
    "some",
    "symmetric",
    "system",
    "table",
    "then",
    "to",
    "trailing",
    "transaction",
    "trigger",
    "true",
    "union",
    "unique",
    "unlock",
    "update",
    "user",
    "using",
    "values",
    "variadic",
    "verbose",
    "view",
    "when",
    "where",
    "window",
    "with",
    "write",
    NULL,
};

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal_ignoring_case(const char *a, const char *b)
{
    while (*a != '\0' && to_lower(*a) == to_lower(*b)) {
        a++;
        b++;
    }
    return to_lower(*a) == to_lower(*b);
}

enum status names_identifier(const char *what, const char *name,
                             struct diag *diag)
{
    char shown[SHOWN_SIZE];
    size_t len = strlen(name);
    bool good = len > 0 && !(name[0] >= '0' && name[0] <= '9');

    text_clean(text_of(name), shown, sizeof(shown));
    if (len > TABLE_NAME_MAX)
        return diag_set(diag, STATUS_CONFIG,
                        "%s \"%s%s\" has %zu characters: at most %d are "
                        "allowed",
                        what, shown, len >= sizeof(shown) ? "..." : "", len,
                        TABLE_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        good = good && ((name[i] >= 'a' && name[i] <= 'z') ||
                        (name[i] >= 'A' && name[i] <= 'Z') ||
                        (name[i] >= '0' && name[i] <= '9') || name[i] == '_');
    if (!good)
        return diag_set(diag, STATUS_CONFIG,
                        "%s \"%s\" is not a name: use letters, digits and _, "
                        "and no digit at the start",
                        what, shown);
    return STATUS_OK;
}

enum status names_table_name(const char *what, const char *name,
                             struct diag *diag)
{
    enum status status = names_identifier(what, name, diag);
    const char *kept = db_kept_prefix(name);

    if (status == STATUS_OK && kept != NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "%s \"%s\" begins with %s, which databases keep for "
                        "themselves: choose another name",
                        what, name, kept);
    return status;
}

static enum status check_table(const char *what, const char *name,
                               struct diag *diag)
{
    enum status status = names_table_name(what, name, diag);

    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; RESERVED[i] != NULL; i++)
        if (equal_ignoring_case(name, RESERVED[i]))
            return diag_set(diag, STATUS_CONFIG,
                            "%s \"%s\" is a word of SQL: choose another name",
                            what, name);
    return STATUS_OK;
}

void names_default(struct names *names)
{
    memset(names, 0, sizeof(*names));
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        memcpy(names->table[i], TABLES[i].name, strlen(TABLES[i].name) + 1);
        names->fill[i].placeholder = TABLES[i].placeholder;
        names->fill[i].value = names->table[i];
    }
}

/* Puts prefix and name together; `out` is written only when they fit. */
static enum status join(const char *prefix, const char *name,
                        char out[TABLE_NAME_MAX + 1], struct diag *diag)
{
    size_t before = strlen(prefix);
    size_t len = strlen(name);
    char *whole = mem_alloc(before + len + 1);
    enum status status;

    memcpy(whole, prefix, before);
    memcpy(whole + before, name, len + 1);
    status = check_table("table name", whole, diag);
    if (status == STATUS_OK)
        memcpy(out, whole, before + len + 1);
    mem_free(whole);
    return status;
}

enum status names_prefix(struct names *names, const char *prefix,
                         struct diag *diag)
{
    enum status status;

    for (size_t i = 0; i < TABLE_COUNT; i++) {
        status = join(prefix, TABLES[i].name, names->table[i], diag);
        if (status != STATUS_OK)
            return diag_wrap(diag, "schema.prefix");
    }
    memcpy(names->prefix, prefix, strlen(prefix) + 1);
    return STATUS_OK;
}

/* "CONSUMER_CHECKPOINTS" in either case, or the placeholder's own part. */
static bool answers_to(const struct table_row *row, const char *word)
{
    size_t len = strlen(row->placeholder) - strlen("_table");
    char own[TABLE_NAME_MAX + 1];

    memcpy(own, row->placeholder, len);
    own[len] = '\0';
    return equal_ignoring_case(row->name, word) ||
           equal_ignoring_case(own, word);
}

static enum status unknown_table(const char *table, struct diag *diag)
{
    const char *candidates[TABLE_COUNT + 1] = {NULL};
    const char *nearest;
    char shown[SHOWN_SIZE];
    char upper[SHOWN_SIZE];

    for (size_t i = 0; i < TABLE_COUNT; i++)
        candidates[i] = TABLES[i].name;
    text_clean(text_of(table), shown, sizeof(shown));
    for (size_t i = 0; i < sizeof(upper); i++)
        upper[i] = shown[i] >= 'a' && shown[i] <= 'z'
                       ? (char)(shown[i] - 'a' + 'A')
                       : shown[i];
    nearest = text_nearest(upper, candidates);
    if (nearest != NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "schema.tables: there is no table \"%s\"; did you "
                        "mean \"%s\"?",
                        shown, nearest);
    return diag_set(diag, STATUS_CONFIG,
                    "schema.tables: there is no table \"%s\"; `moontide "
                    "schema print` shows all of them",
                    shown);
}

enum status names_set(struct names *names, const char *table, const char *value,
                      struct diag *diag)
{
    enum status status;

    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (!answers_to(&TABLES[i], table))
            continue;
        status = *value == '\0'
                     ? diag_set(diag, STATUS_CONFIG, "the name is empty")
                     : join(names->prefix, value, names->table[i], diag);
        return status == STATUS_OK
                   ? status
                   : diag_wrap(diag, "schema.tables.%s", TABLES[i].name);
    }
    return unknown_table(table, diag);
}

enum status names_aggregate(struct names *names, const char *aggregate_type,
                            const char *events, const char *snapshots,
                            struct diag *diag)
{
    struct aggregate_tables *own;
    enum status status;

    for (size_t i = 0; i < names->naggregates; i++)
        if (strcmp(names->aggregates[i].aggregate_type, aggregate_type) == 0)
            return diag_set(diag, STATUS_CONFIG,
                            "aggregate type \"%s\" is given its tables twice",
                            aggregate_type);
    status = check_table("event table", events, diag);
    if (status == STATUS_OK && snapshots != NULL)
        status = check_table("snapshot table", snapshots, diag);
    if (status != STATUS_OK)
        return diag_wrap(diag, "aggregate type \"%s\"", aggregate_type);

    names->aggregates = mem_grow(names->aggregates, names->naggregates + 1,
                                 sizeof(*names->aggregates));
    own = &names->aggregates[names->naggregates];
    memset(own, 0, sizeof(*own));
    own->aggregate_type = mem_copy_text(aggregate_type, strlen(aggregate_type));
    memcpy(own->events, events, strlen(events) + 1);
    if (snapshots != NULL)
        memcpy(own->snapshots, snapshots, strlen(snapshots) + 1);
    names->naggregates++;
    return STATUS_OK;
}

const char *names_placeholder(enum table_id id)
{
    return TABLES[id].placeholder;
}

size_t names_tables(const struct names *names)
{
    return TABLE_COUNT + 2 * names->naggregates;
}

const char *names_table(const struct names *names, size_t index,
                        enum table_id *like)
{
    const struct aggregate_tables *own;

    if (index < TABLE_COUNT) {
        *like = (enum table_id)index;
        return names->table[index];
    }
    own = &names->aggregates[(index - TABLE_COUNT) / 2];
    if ((index - TABLE_COUNT) % 2 == 0) {
        *like = TABLE_EVENT_STORE;
        return own->events;
    }
    *like = TABLE_SNAPSHOTS;
    return own->snapshots[0] != '\0' ? own->snapshots : NULL;
}

const char *names_owner(const struct names *names, size_t index)
{
    return index < TABLE_COUNT
               ? NULL
               : names->aggregates[(index - TABLE_COUNT) / 2].aggregate_type;
}

/* "EVENT_STORE", or whose own table it is, for a message. */
static void describe(const struct names *names, size_t index, char *out,
                     size_t size)
{
    const char *owner = names_owner(names, index);
    enum table_id like;

    (void)names_table(names, index, &like);
    if (owner == NULL)
        snprintf(out, size, "%s", TABLES[index].name);
    else
        snprintf(out, size, "the %s of aggregate type \"%.100s\"",
                 like == TABLE_EVENT_STORE ? "events" : "snapshots", owner);
}

enum status names_check(const struct names *names, struct diag *diag)
{
    enum table_id like;

    for (size_t i = 1; i < names_tables(names); i++) {
        const char *name = names_table(names, i, &like);

        for (size_t j = 0; name != NULL && j < i; j++) {
            const char *other = names_table(names, j, &like);
            char first[160];
            char second[160];

            if (other == NULL || !equal_ignoring_case(name, other))
                continue;
            describe(names, j, first, sizeof(first));
            describe(names, i, second, sizeof(second));
            return diag_set(diag, STATUS_CONFIG,
                            "two tables have one name: %s and %s are both "
                            "called \"%s\"",
                            first, second, name);
        }
    }
    return STATUS_OK;
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->naggregates; i++)
        mem_free((char *)names->aggregates[i].aggregate_type);
    mem_free(names->aggregates);
    names->aggregates = NULL;
    names->naggregates = 0;
}
