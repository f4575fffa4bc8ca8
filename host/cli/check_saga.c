#include "cli/check_saga.h"

#include "base/json.h"
#include "base/json_member.h"
#include "cli/output.h"
#include "model/saga_steps.h"

void check_saga_print(struct buffer *out, const struct declaration *saga)
{
    static const char *const fates[] = {
        [SAGA_UNKNOWN_IGNORE] = "ignored",
        [SAGA_UNKNOWN_DEAD_LETTER] = "a dead letter",
        [SAGA_UNKNOWN_ERROR] = "an error",
    };
    const char *before = "    begun by ";

    for (size_t i = 0; i < saga->ntypes; i++) {
        if (!saga->starts[i])
            continue;
        buffer_append_string(out, before);
        output_safe(out, saga->types[i]);
        before = ", ";
    }
    buffer_printf(out, "\n    an event that finds none is %s\n",
                  fates[saga->unknown]);
    for (size_t i = 0; i < saga->ndeadlines; i++) {
        buffer_append_string(out, i == 0 ? "    deadlines " : ", ");
        output_safe(out, saga->deadlines[i]);
    }
    if (saga->ndeadlines > 0)
        buffer_append_char(out, '\n');
    for (size_t i = 0; i < saga->nsteps; i++) {
        buffer_append_string(out, i == 0 ? "    steps " : ", ");
        output_safe(out, saga->steps[i].name);
        if (saga->steps[i].pivot)
            buffer_append_string(out, " (pivot)");
    }
    if (saga->nsteps > 0)
        buffer_append_char(out, '\n');
}

void check_saga_write(struct buffer *out, bool *first,
                      const struct declaration *saga)
{
    const char *before = "[";

    json_write_key(out, first, "starts");
    for (size_t i = 0; i < saga->ntypes; i++) {
        if (!saga->starts[i])
            continue;
        buffer_append_string(out, before);
        json_write_string(out, saga->types[i]);
        before = ",";
    }
    buffer_append_char(out, ']');
    json_member_string(out, first, "unknown",
                       declaration_unknown_word(saga->unknown));
    json_write_key(out, first, "deadlines");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < saga->ndeadlines; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_write_string(out, saga->deadlines[i]);
    }
    buffer_append_char(out, ']');
    json_write_key(out, first, "steps");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < saga->nsteps; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_write_string(out, saga->steps[i].name);
    }
    buffer_append_char(out, ']');
}
