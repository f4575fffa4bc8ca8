#include "model/event_types.h"

/* Types that split into each other end somewhere: what is deeper is a circle.
 */
#define DEPTH_MAX 16

const struct event_type *event_types_find(const struct event_types *types,
                                          struct text name)
{
    size_t low = 0, high = types->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct event_type *type = &types->items[middle];
        int order = text_compare(name, text_of(type->name));

        if (order == 0)
            return type;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

enum event_age event_type_age(const struct event_type *type, int revision)
{
    if (revision == type->revision)
        return EVENT_CURRENT;
    if (revision > type->revision)
        return EVENT_NEWER;
    return revision >= type->oldest ? EVENT_OLDER : EVENT_UNKNOWN;
}

enum status event_types_admit(const struct event_types *types, struct text name,
                              int revision, struct diag *diag)
{
    const struct event_type *type = event_types_find(types, name);
    enum event_age age;

    if (type == NULL)
        return STATUS_OK;
    age = event_type_age(type, revision);
    if (age == EVENT_CURRENT || age == EVENT_OLDER)
        return STATUS_OK;
    return diag_set(diag, STATUS_INVALID,
                    "an event of type \"%s\" with revision %d, which nothing "
                    "could read: its event type (%s:%d) has %d to %d",
                    type->name, revision, type->file, type->line, type->oldest,
                    type->revision);
}

void event_type_refuse(const struct event_type *type, int revision,
                       const char *how, struct failure *failure)
{
    if (revision > type->revision) {
        failure_set(failure, false, "revision",
                    "newer revision: %s %s with revision %d, and this script "
                    "knows up to %d (%s:%d); it waits for a script that knows "
                    "it: update the scripts",
                    type->name, how, revision, type->revision, type->file,
                    type->line);
        failure->waits = true;
        return;
    }
    failure_set(failure, false, "revision",
                "%s %s with revision %d, and the first step of its upcast "
                "starts from %d; add upcast[%d] (%s:%d)",
                type->name, how, revision, type->oldest, revision, type->file,
                type->line);
}

static bool is_one_of(const struct text *list, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(list[i], name))
            return true;
    return false;
}

static bool leads(const struct event_types *types, struct text name,
                  const struct text *wanted, size_t nwanted, int depth)
{
    const struct event_type *type = event_types_find(types, name);

    for (size_t i = 0; type != NULL && i < type->ninto; i++)
        if (is_one_of(wanted, nwanted, type->into[i]) ||
            (depth < DEPTH_MAX &&
             leads(types, type->into[i], wanted, nwanted, depth + 1)))
            return true;
    return false;
}

bool event_types_lead(const struct event_types *types, struct text name,
                      const struct text *wanted, size_t nwanted)
{
    return leads(types, name, wanted, nwanted, 0);
}
