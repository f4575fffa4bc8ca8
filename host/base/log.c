#include "base/log.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/log_limit.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

static const char *const level_words[] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARN] = "warn",
    [LOG_ERROR] = "error",
};

static const char *const format_words[] = {
    [LOG_TEXT] = "text",
    [LOG_LOGFMT] = "logfmt",
    [LOG_JSON] = "json",
};

/* What control characters become in an escaped text; 0: no letter. */
static char escape_letter(char c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return '\0';
    }
}

/* Control characters, with DEL and those of U+0080 to U+009F. */
static bool is_control(const char *at, size_t len)
{
    const unsigned char *b = (const unsigned char *)at;

    return b[0] < 0x20 || b[0] == 0x7F ||
           (len == 2 && b[0] == 0xC2 && b[1] < 0xA0);
}

/*
 * Appends `t` without control characters and wrong UTF-8. `quoted` also
 * escapes quotes and backslashes.
 */
static void append_safe(struct buffer *out, struct text t, bool quoted)
{
    const char *at = t.data;
    const char *end = text_end(t);

    while (at < end) {
        size_t len = utf8_char(at, end);

        if (len == 0) {
            buffer_append_char(out, '?');
            len = 1;
        } else if (is_control(at, len)) {
            char letter = escape_letter(*at);

            if (letter != '\0')
                buffer_printf(out, "\\%c", letter);
            else
                buffer_printf(out, "\\u%04x",
                              (unsigned)(unsigned char)at[len - 1]);
        } else {
            if (quoted && (*at == '"' || *at == '\\'))
                buffer_append_char(out, '\\');
            buffer_append(out, at, len);
        }
        at += len;
    }
}

static bool needs_quotes(struct text t)
{
    for (size_t i = 0; i < t.len; i++) {
        unsigned char c = (unsigned char)t.data[i];

        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7F)
            return true;
    }
    return t.len == 0;
}

/* Its escapes are those of JSON too. */
static void append_quoted(struct buffer *out, struct text t)
{
    buffer_append_char(out, '"');
    append_safe(out, t, true);
    buffer_append_char(out, '"');
}

static void append_value(struct buffer *out, struct text value)
{
    if (needs_quotes(value))
        append_quoted(out, value);
    else
        buffer_append_text(out, value);
}

void log_field(struct buffer *fields, const char *key, struct text value)
{
    if (fields->len > 0)
        buffer_append_char(fields, ' ');
    buffer_append_string(fields, key);
    buffer_append_char(fields, '=');
    append_value(fields, value);
}

static void append_pair(struct buffer *out, const char *key, const char *value)
{
    if (value == NULL)
        return;
    buffer_printf(out, " %s=", key);
    append_value(out, text_of(value));
}

/* One entry as it is written. */
struct entry {
    enum log_level level;
    const struct log_about *about;
    struct text message;
    int64_t at;      /* when it happened, by the log's clock */
    int64_t repeats; /* left out before it */
};

/* The pairs of the entry, each with a blank before it. */
static void append_about(struct buffer *out, const struct entry *entry)
{
    const struct log_about *about = entry->about;

    append_pair(out, "consumer", about->consumer);
    append_pair(out, "topic", about->topic);
    if (about->position != 0)
        buffer_printf(out, " position=%" PRId64, about->position);
    append_pair(out, "message_id", about->message_id);
    if (about->fields != NULL && about->fields[0] != '\0')
        buffer_printf(out, " %s", about->fields);
    if (entry->repeats > 0)
        buffer_printf(out, " repeats=%" PRId64, entry->repeats);
}

/* A bare logfmt value that means the same in JSON stays bare. */
static bool is_json_literal(struct text t)
{
    return t.len > 0 && t.data[0] != '"' && t.data[0] != '{' &&
           t.data[0] != '[' && json_check(t, NULL, NULL) == STATUS_OK;
}

/* One logfmt pair at `at` as a JSON member; returns what follows it. */
static const char *append_field(struct buffer *out, const char *at)
{
    size_t key_len = strcspn(at, "= ");

    buffer_append_char(out, ',');
    append_quoted(out, (struct text){at, key_len});
    buffer_append_char(out, ':');
    at += key_len;
    if (*at != '=') { /* a flag */
        buffer_append_string(out, "true");
        return at;
    }
    at++;
    if (*at == '"') {
        const char *start = at++;

        while (*at != '\0' && *at != '"')
            at += *at == '\\' && at[1] != '\0' ? 2 : 1;
        at += *at == '"';
        /* append_quoted wrote it, in a form that JSON shares */
        buffer_append(out, start, (size_t)(at - start));
    } else {
        struct text value = {at, strcspn(at, " ")};

        if (is_json_literal(value))
            buffer_append_text(out, value);
        else
            append_quoted(out, value);
        at += value.len;
    }
    return at;
}

static void append_member(struct buffer *out, const char *key,
                          const char *value)
{
    if (value == NULL)
        return;
    buffer_printf(out, ",\"%s\":", key);
    append_quoted(out, text_of(value));
}

static void append_members(struct buffer *out, const struct entry *entry)
{
    const struct log_about *about = entry->about;
    const char *at = about->fields != NULL ? about->fields : "";

    append_member(out, "consumer", about->consumer);
    append_member(out, "topic", about->topic);
    if (about->position != 0)
        buffer_printf(out, ",\"position\":%" PRId64, about->position);
    append_member(out, "message_id", about->message_id);
    while (at += strspn(at, " "), *at != '\0')
        at = append_field(out, at);
    if (entry->repeats > 0)
        buffer_printf(out, ",\"repeats\":%" PRId64, entry->repeats);
}

/* For people: what it is about ends the first line, further lines follow. */
static void append_lines(struct buffer *out, const struct entry *entry)
{
    struct text message = entry->message;
    const char *end = message.data + message.len;
    const char *at = message.data;

    for (;;) {
        size_t left = (size_t)(end - at);
        const char *stop = left > 0 ? memchr(at, '\n', left) : NULL;

        if (stop == NULL)
            stop = end;
        append_safe(out, (struct text){at, (size_t)(stop - at)}, false);
        if (at == message.data)
            append_about(out, entry);
        if (end - stop <= 1) /* a line break at the end adds no line */
            return;
        buffer_append_string(out, "\n    ");
        at = stop + 1;
    }
}

static void append_entry(struct buffer *line, const struct log *log,
                         const struct entry *entry)
{
    const char *word = level_words[entry->level];
    char at[CLOCK_TEXT_SIZE];

    clock_format(entry->at, at);
    switch (log->format) {
    case LOG_TEXT:
        buffer_printf(line, "%.8s %-5s ", at + 11, word);
        append_lines(line, entry);
        break;
    case LOG_LOGFMT:
        buffer_printf(line, "ts=%.23sZ level=%s msg=", at, word);
        append_value(line, entry->message);
        append_about(line, entry);
        break;
    case LOG_JSON:
        buffer_printf(line, "{\"ts\":\"%.23sZ\",\"level\":\"%s\",\"msg\":", at,
                      word);
        append_quoted(line, entry->message);
        append_members(line, entry);
        buffer_append_char(line, '}');
        break;
    }
    buffer_append_char(line, '\n');
}

static void write_entry(const struct log *log, const struct entry *entry)
{
    struct buffer line = BUFFER_EMPTY;

    append_entry(&line, log, entry);
    /* One write, so that lines of several processes do not mix. A log that
     * cannot be written has nowhere to say so. */
    (void)fwrite(line.data, 1, line.len, log->out);
    (void)fflush(log->out);
    buffer_free(&line);
}

/* --- repeats ------------------------------------------------------------- */

static void add_part(struct buffer *key, const char *part)
{
    if (part != NULL)
        buffer_append_string(key, part);
    buffer_append_char(key, '\0');
}

static uint64_t kind_of(const char *place, const struct entry *entry)
{
    struct buffer key = BUFFER_EMPTY;
    uint64_t kind;

    buffer_append_char(&key, (char)entry->level);
    add_part(&key, place);
    add_part(&key, entry->about->consumer);
    add_part(&key, entry->about->topic);
    add_part(&key, entry->about->alike);
    kind = hash_fnv1a64(buffer_text(&key));
    buffer_free(&key);
    return kind;
}

static void copy_part(struct buffer *copy, const char *part)
{
    if (part != NULL)
        buffer_append_string(copy, part);
}

static void keep(const struct log *log, uint64_t kind,
                 const struct entry *entry)
{
    struct log_line line = {.level = (int)entry->level,
                            .at = entry->at,
                            .position = entry->about->position};

    buffer_append_text(&line.message, entry->message);
    copy_part(&line.consumer, entry->about->consumer);
    copy_part(&line.topic, entry->about->topic);
    copy_part(&line.message_id, entry->about->message_id);
    copy_part(&line.fields, entry->about->fields);
    log_limit_keep(log->limit, kind, &line);
}

void log_tell(const struct log *log, bool all)
{
    struct log_line line;
    int64_t repeats;
    int saved_errno = errno;

    if (log->limit == NULL)
        return;
    while (
        log_limit_next(log->limit, clock_monotonic(), all, &line, &repeats)) {
        const struct log_about about = {
            .consumer = line.consumer.data,
            .topic = line.topic.data,
            .position = line.position,
            .message_id = line.message_id.data,
            .fields = line.fields.data,
        };

        write_entry(log, &(struct entry){.level = (enum log_level)line.level,
                                         .about = &about,
                                         .message = buffer_text(&line.message),
                                         .at = line.at,
                                         .repeats = repeats});
        log_line_free(&line);
    }
    errno = saved_errno;
}

void log_write_at(const char *place, const struct log *log,
                  enum log_level level, const struct log_about *about,
                  const char *format, ...)
{
    static const struct log_about nothing = {.consumer = NULL};
    struct entry entry = {.level = level, .about = about};
    struct buffer message = BUFFER_EMPTY;
    int saved_errno = errno;
    bool limited;
    uint64_t kind = 0;
    va_list args;

    if (log == NULL || log->out == NULL || level < log->level)
        return;
    if (about == NULL)
        entry.about = &nothing;
    va_start(args, format);
    buffer_vprintf(&message, format, args);
    va_end(args);
    entry.message = buffer_text(&message);
    entry.at = clock_now(log->clock);
    limited = log->limit != NULL && !entry.about->every;
    if (limited)
        kind = kind_of(place, &entry);
    if (!limited ||
        log_limit_pass(log->limit, kind, clock_monotonic(), &entry.repeats))
        write_entry(log, &entry);
    else
        keep(log, kind, &entry);
    buffer_free(&message);
    errno = saved_errno;
}

static bool find_word(const char *const *words, int count, const char *word,
                      int *found)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            *found = i;
            return true;
        }
    }
    return false;
}

bool log_parse_level(const char *word, enum log_level *level)
{
    int found;

    if (!find_word(level_words, LOG_ERROR + 1, word, &found))
        return false;
    *level = (enum log_level)found;
    return true;
}

bool log_parse_format(const char *word, enum log_format *format)
{
    int found;

    if (!find_word(format_words, LOG_JSON + 1, word, &found))
        return false;
    *format = (enum log_format)found;
    return true;
}
