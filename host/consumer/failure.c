#include "consumer/failure.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void failure_set(struct failure *failure, bool permanent, const char *class,
                 const char *format, ...)
{
    char raw[FAILURE_REASON_SIZE];
    int used = snprintf(raw, sizeof(raw), "%s: ", class);
    size_t cut;
    va_list args;

    failure->permanent = permanent;
    failure->waits = failure->dead_letter = false;
    va_start(args, format);
    vsnprintf(raw + used, sizeof(raw) - (size_t)used, format, args);
    va_end(args);
    text_clean(text_of(raw), failure->reason, sizeof(failure->reason));
    cut = text_utf8_prefix_chars(text_of(failure->reason),
                                 FAILURE_REASON_CHARS);
    failure->reason[cut] = '\0';
}

void failure_add(struct failure *failure, const char *format, ...)
{
    static const char cut[] = "...";
    char raw[FAILURE_REASON_SIZE], added[FAILURE_REASON_SIZE];
    size_t len = strlen(failure->reason);
    size_t chars;
    va_list args;

    va_start(args, format);
    vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    text_clean(text_of(raw), added, sizeof(added));
    chars = text_utf8_length(text_of(added));
    if (chars + sizeof(cut) > FAILURE_REASON_CHARS)
        return; /* the reason itself says more */
    if (text_utf8_length(text_of(failure->reason)) + chars >
        FAILURE_REASON_CHARS) {
        len = text_utf8_prefix_chars(text_of(failure->reason),
                                     FAILURE_REASON_CHARS - chars -
                                         (sizeof(cut) - 1));
        memcpy(failure->reason + len, cut, sizeof(cut));
        len += sizeof(cut) - 1;
    }
    memcpy(failure->reason + len, added, strlen(added) + 1);
}

void failure_recorded(struct failure *failure, struct text reason)
{
    failure->permanent = failure->waits = failure->dead_letter = false;
    text_clean(reason, failure->reason, sizeof(failure->reason));
}

void failure_cause(const struct failure *failure, char out[FAILURE_CAUSE_SIZE])
{
    const char *reason = failure->reason;
    const char *end = strstr(reason, ": ");

    end = end != NULL ? strstr(end + 2, ": ") : NULL;
    (void)snprintf(out, FAILURE_CAUSE_SIZE, "%.*s",
                   (int)(end != NULL ? (size_t)(end - reason) : strlen(reason)),
                   reason);
}

bool failure_is_crash(struct text reason)
{
    static const char class[] = "crash:";

    return reason.len >= sizeof(class) - 1 &&
           memcmp(reason.data, class, sizeof(class) - 1) == 0;
}
