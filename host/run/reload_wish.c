#include "run/reload_wish.h"

#include "base/json_member.h"
#include "base/memory.h"
#include "run/control.h"

struct reload_waiting {
    struct control_asker *asker;
    struct reload_waiting *next;
};

void reload_wish_wait(struct reload_wish *wish, struct control_asker *asker)
{
    struct reload_waiting *waiting = mem_alloc(sizeof(*waiting));

    waiting->asker = asker;
    waiting->next = wish->waiting;
    wish->waiting = waiting;
}

static void answer_all(struct reload_wish *wish, const struct buffer *line)
{
    while (wish->waiting != NULL) {
        struct reload_waiting *waiting = wish->waiting;

        wish->waiting = waiting->next;
        control_answer(waiting->asker, buffer_text(line));
        mem_free(waiting);
    }
}

/* {"status":"ok","version":...,"changed":...,"changes":...,"message":...} */
void reload_wish_answer(struct reload_wish *wish,
                        const struct reload_answer *answer)
{
    struct buffer line = BUFFER_EMPTY;
    bool first = true;

    buffer_append_char(&line, '{');
    json_member_string(&line, &first, "status", status_word(answer->status));
    json_member_string(&line, &first, "version", answer->version);
    json_member_bool(&line, &first, "changed", answer->changed);
    json_member_string(&line, &first, "changes", answer->changes);
    json_member_string(&line, &first, "message", answer->message);
    buffer_append_char(&line, '}');
    answer_all(wish, &line);
    buffer_free(&line);
}
