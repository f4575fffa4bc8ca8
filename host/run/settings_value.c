#include "run/settings_value.h"

#include "base/json.h"
#include "base/memory.h"
#include "db/url.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Appends the value as JSON; passwords of URLs are masked. */
static void write_value(const struct settings_key *key,
                        const struct table_entry *entry, struct buffer *out)
{
    struct buffer masked = BUFFER_EMPTY;

    switch (entry->kind) {
    case TABLE_STRING:
        if (key != NULL &&
            (key->kind == SETTINGS_DATABASE || key->kind == SETTINGS_NOTIFY)) {
            db_url_mask(entry->string.data, &masked);
            json_write_string(out, buffer_text(&masked));
        } else {
            json_write_string(out, entry->string);
        }
        break;
    case TABLE_NUMBER:
        if (isfinite(entry->number))
            buffer_printf(out, "%.15g", entry->number);
        else
            buffer_append_string(out, "null");
        break;
    case TABLE_BOOLEAN:
        buffer_append_string(out, entry->boolean ? "true" : "false");
        break;
    case TABLE_LIST:
        buffer_append_char(out, '[');
        for (size_t i = 0; i < entry->nitems; i++) {
            if (i > 0)
                buffer_append_char(out, ',');
            json_write_string(out, entry->items[i]);
        }
        buffer_append_char(out, ']');
        break;
    }
    buffer_free(&masked);
}

static enum status bad_value(const struct settings_key *key,
                             const struct table_entry *entry, const char *where,
                             struct diag *diag)
{
    struct buffer value = BUFFER_EMPTY;

    write_value(key, entry, &value);
    diag_set(diag, STATUS_CONFIG, "%s: %s must be %s, not %.*s", where,
             key->name, key->allowed,
             (int)text_utf8_prefix(buffer_text(&value), 200), value.data);
    buffer_free(&value);
    return STATUS_CONFIG;
}

static bool read_integer(const struct table_entry *entry, bool loose,
                         int64_t *value)
{
    char *end;

    if (entry->kind == TABLE_NUMBER) {
        if (!(fabs(entry->number) < 1e15) ||
            floor(entry->number) != entry->number)
            return false;
        *value = (int64_t)entry->number;
        return true;
    }
    if (entry->kind != TABLE_STRING || !loose || entry->string.len == 0 ||
        strchr("+-0123456789", entry->string.data[0]) == NULL)
        return false;
    errno = 0;
    *value = strtoll(entry->string.data, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool read_amount(const struct settings_key *key,
                        const struct table_entry *entry, int64_t *value)
{
    struct text text = entry->string;
    bool negative;

    if (entry->kind == TABLE_NUMBER) {
        double scaled = entry->number;

        if (key->kind == SETTINGS_DURATION)
            scaled *= (double)CLOCK_SECOND;
        if (!(fabs(scaled) < 9e18))
            return false;
        *value = llround(scaled);
        return key->kind == SETTINGS_DURATION || floor(scaled) == scaled;
    }
    if (entry->kind != TABLE_STRING)
        return false;
    negative = key->min < 0 && text.len > 0 && text.data[0] == '-';
    if (negative)
        text = (struct text){text.data + 1, text.len - 1};
    if ((key->kind == SETTINGS_DURATION
             ? clock_parse_duration(text, value, NULL)
             : clock_parse_size(text, value, NULL)) != STATUS_OK)
        return false;
    if (negative)
        *value = -*value;
    return true;
}

static bool read_number(const struct table_entry *entry, bool loose,
                        double *value)
{
    char *end;

    *value = entry->number;
    if (entry->kind == TABLE_NUMBER)
        return isfinite(*value);
    if (entry->kind != TABLE_STRING || !loose || entry->string.len == 0 ||
        strchr("+-.0123456789", entry->string.data[0]) == NULL)
        return false;
    *value = strtod(entry->string.data, &end);
    return isfinite(*value) && *end == '\0';
}

static bool read_boolean(const struct table_entry *entry, bool loose,
                         bool *value)
{
    if (entry->kind == TABLE_BOOLEAN) {
        *value = entry->boolean;
        return true;
    }
    if (entry->kind != TABLE_STRING || !loose)
        return false;
    *value = text_equal(entry->string, TEXT_LITERAL("true")) ||
             text_equal(entry->string, TEXT_LITERAL("1"));
    return *value || text_equal(entry->string, TEXT_LITERAL("false")) ||
           text_equal(entry->string, TEXT_LITERAL("0"));
}

static void free_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        mem_free(list[i]);
    mem_free(list);
}

static void set_list(const struct table_entry *entry, char ***target)
{
    char **list = mem_alloc((entry->nitems + 1) * sizeof(*list));

    for (size_t i = 0; i < entry->nitems; i++)
        list[i] = mem_copy_text(entry->items[i].data, entry->items[i].len);
    free_list(*target);
    *target = list;
}

static bool set_text(const struct settings_key *key,
                     const struct table_entry *entry, char **target)
{
    bool empty = entry->string.len == 0 && key->kind == SETTINGS_NOTIFY;

    if (entry->kind != TABLE_STRING || (entry->string.len == 0 && !empty) ||
        memchr(entry->string.data, '\0', entry->string.len) != NULL)
        return false;
    if (key->kind != SETTINGS_TEXT && !empty &&
        db_url_dialect(entry->string.data) == NULL)
        return false;
    mem_free(*target);
    *target = mem_copy_text(entry->string.data, entry->string.len);
    return true;
}

static bool set_value(const struct settings_key *key,
                      const struct table_entry *entry, bool loose,
                      struct settings *settings)
{
    void *target = (char *)settings + key->target;
    int64_t number = 0;
    double real;

    if (key->or_none && entry->kind == TABLE_STRING &&
        text_equal(entry->string, TEXT_LITERAL("none"))) {
        *(int64_t *)target = 0;
        return true;
    }
    switch (key->kind) {
    case SETTINGS_TEXT:
    case SETTINGS_DATABASE:
    case SETTINGS_NOTIFY:
        return set_text(key, entry, target);
    case SETTINGS_PREFIX: /* names_prefix judges it */
        return entry->kind == TABLE_STRING;
    case SETTINGS_INTEGER:
        if (!read_integer(entry, loose, &number) || number < key->min ||
            number > key->max)
            return false;
        *(int *)target = (int)number;
        return true;
    case SETTINGS_COUNT:
        if (!read_integer(entry, loose, &number) || number < key->min ||
            number > key->max)
            return false;
        *(int64_t *)target = number;
        return true;
    case SETTINGS_NUMBER:
        if (!read_number(entry, loose, &real) || real < (double)key->min ||
            real > (double)key->max)
            return false;
        *(double *)target = real;
        return true;
    case SETTINGS_DURATION:
    case SETTINGS_SIZE:
        if (!read_amount(key, entry, &number) || number < key->min ||
            number > key->max)
            return false;
        *(int64_t *)target = number;
        return true;
    case SETTINGS_BOOLEAN:
        return read_boolean(entry, loose, target);
    case SETTINGS_LIST:
        if (entry->kind != TABLE_LIST)
            return false;
        set_list(entry, target);
        return true;
    case SETTINGS_LEVEL:
        return entry->kind == TABLE_STRING &&
               log_parse_level(entry->string.data, target);
    case SETTINGS_FORMAT:
        return entry->kind == TABLE_STRING &&
               log_parse_format(entry->string.data, target);
    case SETTINGS_POLICY:
        return entry->kind == TABLE_STRING &&
               error_policy_parse(entry->string, target);
    }
    return false;
}

enum status settings_value_set(const struct settings_key *key,
                               const struct table_entry *entry, bool loose,
                               const char *where, struct settings *settings,
                               struct diag *diag)
{
    if (!set_value(key, entry, loose, settings))
        return bad_value(key, entry, where, diag);
    return STATUS_OK;
}

void settings_value_write(const struct settings_key *key,
                          const struct table_entry *entry, struct buffer *out)
{
    int64_t number = 0;
    double real;
    bool boolean = false;

    if (key != NULL &&
        (key->kind == SETTINGS_INTEGER || key->kind == SETTINGS_COUNT) &&
        read_integer(entry, true, &number))
        buffer_printf(out, "%" PRId64, number);
    else if (key != NULL && key->kind == SETTINGS_NUMBER &&
             read_number(entry, true, &real))
        buffer_printf(out, "%.15g", real);
    else if (key != NULL && key->kind == SETTINGS_BOOLEAN &&
             read_boolean(entry, true, &boolean))
        buffer_append_string(out, boolean ? "true" : "false");
    else
        write_value(key, entry, out);
}
