#include "run/status_word.h"

#include <inttypes.h>

void status_word_age(struct buffer *out, int64_t us)
{
    int64_t seconds = us > 0 ? us / CLOCK_SECOND : 0;

    if (seconds < 60)
        buffer_printf(out, "%" PRId64 " s", seconds);
    else if (seconds < 3600)
        buffer_printf(out, "%" PRId64 " min", seconds / 60);
    else if (seconds < 86400)
        buffer_printf(out, "%" PRId64 " h", seconds / 3600);
    else
        buffer_printf(out, "%" PRId64 " d", seconds / 86400);
}

void status_word_count(struct buffer *out, int64_t count, const char *what)
{
    buffer_printf(out, "%" PRId64 " %s%s", count, what, count == 1 ? "" : "s");
}

bool status_word_is_in(const struct status_consumer *consumer,
                       enum consumer_state state)
{
    return strcmp(consumer->state, consumer_state_word(state)) == 0;
}

void status_word_keep(struct arena *arena, const char ***list, size_t *count,
                      struct buffer *sentence)
{
    *list = arena_grow(arena, (void *)*list, *count, sizeof(**list));
    (*list)[(*count)++] = arena_string(arena, buffer_text(sentence));
    buffer_clear(sentence);
}
