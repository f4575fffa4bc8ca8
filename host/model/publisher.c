#include "model/publisher.h"

#include "base/memory.h"

const struct publisher *publishers_find(const struct publishers *publishers,
                                        struct text name)
{
    size_t low = 0, high = publishers->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = text_compare(text_of(publishers->items[middle].name), name);

        if (order == 0)
            return &publishers->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *publishers_nearest(const struct publishers *publishers,
                               const char *name)
{
    const char **names = mem_alloc((publishers->count + 1) * sizeof(*names));
    const char *near;

    for (size_t i = 0; i < publishers->count; i++)
        names[i] = publishers->items[i].name;
    names[publishers->count] = NULL;
    near = text_nearest(name, names);
    mem_free(names);
    return near;
}
