#include "cli/ndjson_event.h"

#include "base/clock.h"
#include "base/json.h"

#include <inttypes.h>

enum field {
    FIELD_AGGREGATE_TYPE,
    FIELD_AGGREGATE_ID,
    FIELD_TYPE,
    FIELD_PAYLOAD,
    FIELD_KEY,
    FIELD_ID,
    FIELD_METADATA,
    FIELD_REVISION,
    FIELD_OCCURRED_AT,
    FIELD_EXPECTED,
    FIELD_COUNT
};

#define BIT(field)    (1U << (field))
#define FIELDS_STREAM (BIT(FIELD_AGGREGATE_TYPE) | BIT(FIELD_AGGREGATE_ID))
#define FIELDS_EVENT  (BIT(FIELD_TYPE) | BIT(FIELD_PAYLOAD))

static const struct {
    unsigned required;
    unsigned unknown;
} kind_fields[] = {
    [NDJSON_APPEND] = {FIELDS_STREAM | FIELDS_EVENT, BIT(FIELD_KEY)},
    [NDJSON_EMIT] = {FIELDS_EVENT, FIELDS_STREAM | BIT(FIELD_EXPECTED)},
};

static const char *const field_names[FIELD_COUNT + 1] = {
    [FIELD_AGGREGATE_TYPE] = "aggregate_type",
    [FIELD_AGGREGATE_ID] = "aggregate_id",
    [FIELD_TYPE] = "type",
    [FIELD_PAYLOAD] = "payload",
    [FIELD_KEY] = "key",
    [FIELD_ID] = "id",
    [FIELD_METADATA] = "metadata",
    [FIELD_REVISION] = "revision",
    [FIELD_OCCURRED_AT] = "occurred_at",
    [FIELD_EXPECTED] = "expected",
    [FIELD_COUNT] = NULL,
};

static const char *const kind_names[] = {
    [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",
    [JSON_STRING] = "a string",  [JSON_NUMBER] = "a number",
    [JSON_TRUE] = "true",        [JSON_FALSE] = "false",
    [JSON_NULL] = "null",
};

struct line_reader {
    enum ndjson_kind kind;
    struct arena *arena;
    struct buffer *scratch;
    struct append_event *event;
    struct diag *diag;
};

static enum status wrong_kind(struct line_reader *r, enum field field,
                              const char *wanted, struct json_value value)
{
    return diag_set(r->diag, STATUS_INVALID, "%s must be %s, not %s",
                    field_names[field], wanted, kind_names[value.kind]);
}

static enum status read_string(struct line_reader *r, enum field field,
                               struct json_value value, struct text *out)
{
    struct text inner = {value.raw.data + 1, value.raw.len - 2};

    if (value.kind != JSON_STRING)
        return wrong_kind(r, field, "a string", value);
    if (memchr(inner.data, '\\', inner.len) == NULL) {
        *out = inner;
        return STATUS_OK;
    }
    buffer_clear(r->scratch);
    json_decode_string(value, r->scratch);
    *out = arena_copy(r->arena, buffer_text(r->scratch));
    return STATUS_OK;
}

static enum status read_integer(struct line_reader *r, enum field field,
                                struct json_value value, int64_t max,
                                int64_t *out)
{
    int64_t number;

    if (!json_decode_int64(value, &number) || number < 0 || number > max)
        return diag_set(r->diag, STATUS_INVALID,
                        "%s must be a whole number from 0 to %" PRId64
                        ", not %.40s",
                        field_names[field], max,
                        value.raw.len <= 40 ? arena_string(r->arena, value.raw)
                                            : "such a long one");
    *out = number;
    return STATUS_OK;
}

static enum status read_id(struct line_reader *r, struct json_value value)
{
    char shown[64];
    struct text text = TEXT_NONE;
    enum status status = read_string(r, FIELD_ID, value, &text);

    if (status != STATUS_OK)
        return status;
    if (!uuid_parse(text, &r->event->id)) {
        text_clean(text, shown, sizeof(shown));
        return diag_set(r->diag, STATUS_INVALID,
                        "id is not a UUID (8-4-4-4-12 hex digits): \"%s\"",
                        shown);
    }
    r->event->has_id = true;
    return STATUS_OK;
}

static enum status read_revision(struct line_reader *r, struct json_value value)
{
    int64_t number = 0;
    enum status status;

    if (value.kind != JSON_NUMBER)
        return wrong_kind(r, FIELD_REVISION, "a number", value);
    status = read_integer(r, FIELD_REVISION, value, INT32_MAX, &number);
    if (status == STATUS_OK)
        r->event->revision = (int)number;
    r->event->has_revision = true;
    return status;
}

static enum status read_time(struct line_reader *r, struct json_value value)
{
    struct text text = TEXT_NONE;
    enum status status = read_string(r, FIELD_OCCURRED_AT, value, &text);

    if (status != STATUS_OK)
        return status;
    status = clock_parse(text, &r->event->occurred_at, r->diag);
    if (status != STATUS_OK)
        return diag_wrap(r->diag, "occurred_at");
    r->event->has_occurred_at = true;
    return STATUS_OK;
}

static enum status read_expected(struct line_reader *r, struct json_value value)
{
    static const char wanted[] = "a sequence number, \"any\" or \"none\"";
    struct text word = TEXT_NONE;
    enum status status;

    if (value.kind == JSON_NUMBER) {
        r->event->expect = APPEND_AT;
        return read_integer(r, FIELD_EXPECTED, value, INT64_MAX,
                            &r->event->expected);
    }
    if (value.kind != JSON_STRING)
        return wrong_kind(r, FIELD_EXPECTED, wanted, value);
    status = read_string(r, FIELD_EXPECTED, value, &word);
    if (status != STATUS_OK)
        return status;
    if (text_equal(word, TEXT_LITERAL("any")))
        r->event->expect = APPEND_ANY;
    else if (text_equal(word, TEXT_LITERAL("none")))
        r->event->expect = APPEND_NONE;
    else
        return diag_set(r->diag, STATUS_INVALID,
                        "expected must be %s, not another word", wanted);
    return STATUS_OK;
}

static enum status read_field(struct line_reader *r, enum field field,
                              struct json_value value)
{
    switch (field) {
    case FIELD_AGGREGATE_TYPE:
        return read_string(r, field, value, &r->event->aggregate_type);
    case FIELD_AGGREGATE_ID:
        return read_string(r, field, value, &r->event->aggregate_id);
    case FIELD_TYPE:
        return read_string(r, field, value, &r->event->type);
    case FIELD_PAYLOAD:
        r->event->payload = value.raw;
        return STATUS_OK;
    case FIELD_KEY:
        if (value.kind == JSON_NULL)
            return STATUS_OK;
        return read_string(r, field, value, &r->event->key);
    case FIELD_METADATA:
        if (value.kind != JSON_OBJECT)
            return wrong_kind(r, field, "an object", value);
        r->event->metadata = value.raw;
        return STATUS_OK;
    case FIELD_ID:
        return read_id(r, value);
    case FIELD_REVISION:
        return read_revision(r, value);
    case FIELD_OCCURRED_AT:
        return read_time(r, value);
    case FIELD_EXPECTED:
        return read_expected(r, value);
    case FIELD_COUNT:
        break;
    }
    return STATUS_OK;
}

static enum field find_field(enum ndjson_kind kind, struct text key)
{
    unsigned field = 0;

    while (field < FIELD_COUNT &&
           ((kind_fields[kind].unknown & BIT(field)) != 0 ||
            !text_equal(text_of(field_names[field]), key)))
        field++;
    return (enum field)field;
}

/* The name of a field of the kind that is most like `shown`, or NULL. */
static const char *nearest_field(enum ndjson_kind kind, const char *shown)
{
    const char *names[FIELD_COUNT + 1];
    size_t count = 0;

    for (unsigned field = 0; field < FIELD_COUNT; field++)
        if ((kind_fields[kind].unknown & BIT(field)) == 0)
            names[count++] = field_names[field];
    names[count] = NULL;
    return text_nearest(shown, names);
}

static enum status unknown_field(struct line_reader *r, struct text key)
{
    char shown[64];
    const char *nearest;

    text_clean(key, shown, sizeof(shown));
    nearest = nearest_field(r->kind, shown);
    if (r->kind == NDJSON_EMIT && find_field(NDJSON_APPEND, key) != FIELD_COUNT)
        return diag_set(r->diag, STATUS_INVALID,
                        "field \"%s\" belongs to an event of a stream, which "
                        "`moontide append` writes; an emitted event has a key",
                        shown);
    if (nearest != NULL)
        return diag_set(r->diag, STATUS_INVALID,
                        "unknown field \"%s\"; did you mean \"%s\"?", shown,
                        nearest);
    return diag_set(r->diag, STATUS_INVALID,
                    "unknown field \"%s\"; what belongs to the event goes into "
                    "its payload, what is about it into its metadata",
                    shown);
}

static enum status read_members(struct line_reader *r, struct json_value object)
{
    struct json_members members = json_members_of(object);
    struct json_value value;
    struct text key;
    unsigned seen = 0;

    while (json_members_next(&members, r->scratch, &key, &value)) {
        enum field field = find_field(r->kind, key);
        enum status status;

        if (field == FIELD_COUNT)
            return unknown_field(r, key);
        if ((seen & BIT(field)) != 0)
            return diag_set(r->diag, STATUS_INVALID,
                            "field \"%s\" is there twice", field_names[field]);
        seen |= BIT(field);
        status = read_field(r, field, value);
        if (status != STATUS_OK)
            return status;
    }
    for (unsigned field = 0; field < FIELD_COUNT; field++) {
        if ((kind_fields[r->kind].required & ~seen & BIT(field)) != 0)
            return diag_set(r->diag, STATUS_INVALID, "field \"%s\" is missing",
                            field_names[field]);
    }
    return STATUS_OK;
}

static bool starts_with(struct text line, const char *bytes)
{
    return line.len >= strlen(bytes) &&
           memcmp(line.data, bytes, strlen(bytes)) == 0;
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The first one that is no white space, 0 when there is none. */
static char first_character(struct text line)
{
    size_t at = 0;

    while (at < line.len && is_white(line.data[at]))
        at++;
    return at < line.len ? line.data[at] : '\0';
}

/* A line that opens an object or a list and is over before it is closed. */
static bool is_cut_short(struct text line, size_t offset)
{
    char first = first_character(line);

    while (line.len > 0 && is_white(line.data[line.len - 1]))
        line.len--;
    return offset >= line.len && (first == '{' || first == '[');
}

/* What no editor shows is named: a byte order mark, a NUL byte. */
static enum status not_json(struct text line, size_t offset, struct diag *diag)
{
    const char *nul = memchr(line.data, '\0', line.len);

    if (starts_with(line, "\xef\xbb\xbf"))
        return diag_set(diag, STATUS_INVALID,
                        "starts with a byte order mark; save the file as "
                        "UTF-8 without one");
    if (starts_with(line, "\xff\xfe") || starts_with(line, "\xfe\xff"))
        return diag_set(diag, STATUS_INVALID,
                        "starts with the byte order mark of UTF-16; save the "
                        "file as UTF-8");
    if (is_cut_short(line, offset))
        return diag_set(diag, STATUS_INVALID,
                        "not JSON: the line ends before its %s does; one JSON "
                        "object per line is wanted, and `jq -c %s FILE` writes "
                        "them so",
                        first_character(line) == '{' ? "object" : "list",
                        first_character(line) == '{' ? "." : "'.[]'");
    if (nul != NULL)
        return diag_set(diag, STATUS_INVALID, "NUL byte at offset %zu",
                        (size_t)(nul - line.data));
    return diag_wrap(diag, "not JSON");
}

/* The one value of a checked line. Its end is known without a walk. */
static struct json_value value_of(struct text line)
{
    struct text raw = line;

    while (strchr(" \t\r", raw.data[0]) != NULL) {
        raw.data++;
        raw.len--;
    }
    if (raw.data[0] != '{')
        return json_first(raw);
    while (raw.data[raw.len - 1] != '}')
        raw.len--;
    return (struct json_value){JSON_OBJECT, raw};
}

enum status ndjson_event_read(enum ndjson_kind kind, struct text line,
                              struct arena *arena, struct buffer *scratch,
                              struct append_event *event, struct diag *diag)
{
    struct line_reader reader = {kind, arena, scratch, event, diag};
    struct json_value object;
    size_t offset;

    *event = (struct append_event){.expect = APPEND_ANY, .checked = true};
    if (json_check(line, &offset, diag) != STATUS_OK)
        return not_json(line, offset, diag);
    object = value_of(line);
    if (object.kind != JSON_OBJECT)
        return diag_set(diag, STATUS_INVALID,
                        "each line must be an object, not %s%s",
                        kind_names[object.kind],
                        object.kind == JSON_ARRAY
                            ? "; `jq -c '.[]' FILE` puts each of its items on "
                              "a line"
                            : "");
    return read_members(&reader, object);
}
