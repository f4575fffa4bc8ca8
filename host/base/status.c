#include "base/status.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#define CUT_MARK "..."

const char *status_word(enum status status)
{
    switch (status) {
#define STATUS_WORD(name, value, word)                                         \
    case STATUS_##name:                                                        \
        return word;
        STATUS_MAP(STATUS_WORD)
#undef STATUS_WORD
    }
    return "unknown";
}

/*
 * Stores `text` as the message. Text from drivers and scripts may be no valid
 * UTF-8; a message that does not fit ends with a visible mark.
 */
static void store_message(struct diag *diag, struct text text)
{
    size_t room = sizeof(diag->message);

    text_clean(text, diag->message, room);
    if (text.len < room)
        return;
    room -= sizeof(CUT_MARK);
    room = text_utf8_prefix(text_of(diag->message), room);
    memcpy(diag->message + room, CUT_MARK, sizeof(CUT_MARK));
}

static struct text format_text(char *out, size_t size, const char *format,
                               va_list args) PRINTF_LIKE(3, 0);

/* The arguments may point into the old message, hence an array beside it. */
static struct text format_text(char *out, size_t size, const char *format,
                               va_list args)
{
    int len = vsnprintf(out, size, format, args);

    if (len < 0) /* the sentence without its values is better than none */
        len = snprintf(out, size, "%s", format);
    return (struct text){out, (size_t)len < size ? (size_t)len : size - 1};
}

enum status diag_set(struct diag *diag, enum status status, const char *format,
                     ...)
{
    char text[DIAG_MESSAGE_SIZE + 4]; /* room to see a cut character whole */
    va_list args;

    if (diag == NULL)
        return status;
    va_start(args, format);
    store_message(diag, format_text(text, sizeof(text), format, args));
    va_end(args);
    diag->status = status;
    diag->constraint[0] = '\0';
    return status;
}

enum status diag_wrap(struct diag *diag, const char *format, ...)
{
    char context[DIAG_MESSAGE_SIZE];
    char text[2 * DIAG_MESSAGE_SIZE + 2];
    va_list args;

    if (diag == NULL)
        return STATUS_FAILED;
    va_start(args, format);
    (void)format_text(context, sizeof(context), format, args);
    va_end(args);
    (void)snprintf(text, sizeof(text), "%s: %s", context, diag->message);
    store_message(diag, text_of(text));
    return diag->status;
}

enum status diag_append(struct diag *diag, const char *format, ...)
{
    char more[DIAG_MESSAGE_SIZE];
    char text[2 * DIAG_MESSAGE_SIZE + 2];
    va_list args;

    if (diag == NULL)
        return STATUS_FAILED;
    va_start(args, format);
    (void)format_text(more, sizeof(more), format, args);
    va_end(args);
    (void)snprintf(text, sizeof(text), "%s%s", diag->message, more);
    store_message(diag, text_of(text));
    return diag->status;
}

void diag_name_quoted(struct diag *diag, const char *message, char quote)
{
    const char *name = strchr(message, quote);
    const char *end = name != NULL ? strchr(name + 1, quote) : NULL;
    const char *point;

    if (diag == NULL || end == NULL)
        return;
    name++;
    point = memchr(name, '.', (size_t)(end - name));
    if (point != NULL)
        name = point + 1;
    text_clean((struct text){name, (size_t)(end - name)}, diag->constraint,
               sizeof(diag->constraint));
}
