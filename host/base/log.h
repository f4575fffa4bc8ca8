/*
 * Log -- lines on standard error: text on a terminal, logfmt or JSON
 * otherwise. Times are UTC. Whatever a message or a value contains, an entry
 * cannot look like two: control characters are written as escapes, bytes that
 * are no UTF-8 as '?', and only text for people has further lines, indented.
 * Payloads are never logged.
 */
#ifndef HOST_BASE_LOG_H
#define HOST_BASE_LOG_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

struct log_limit; /* base/log_limit.h */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_LOGFMT, LOG_JSON };

struct log {
    FILE *out; /* NULL: nothing is written */
    enum log_level level;
    enum log_format format;
    const struct clock *clock;
    struct log_limit *limit; /* NULL: every line is written */
};

/** What a line is about; unused fields are NULL or 0. */
struct log_about {
    const char *consumer;
    const char *topic;
    int64_t position;       /* 0: none */
    const char *message_id; /* text form */
    const char *fields;     /* more logfmt pairs, already encoded, or NULL */
    const char *alike;      /* tells lines of one place apart, or NULL */
    bool every;             /* asked for line by line: there is no limit */
};

#define LOG_TEXT_OF_(x) #x
#define LOG_TEXT_OF(x)  LOG_TEXT_OF_(x)
#define LOG_PLACE       __FILE__ ":" LOG_TEXT_OF(__LINE__)

/** log_write(log, level, about, format, ...); `about` may be NULL. */
#define log_write(...) log_write_at(LOG_PLACE, __VA_ARGS__)

void log_write_at(const char *place, const struct log *log,
                  enum log_level level, const struct log_about *about,
                  const char *format, ...) PRINTF_LIKE(5, 6);

/** Writes what the limit has left out and whose time has come; whoever goes on
 * for long calls it now and then, and at the end with `all`. */
void log_tell(const struct log *log, bool all);

/** Appends a pair for log_about.fields, the value quoted where it must be. */
void log_field(struct buffer *fields, const char *key, struct text value);

/** "debug", "info", "warn", "error"; false for another word. */
bool log_parse_level(const char *word, enum log_level *level);
/** "text", "logfmt", "json"; false for another word. */
bool log_parse_format(const char *word, enum log_format *format);

#endif
