#include "run/settings_origins.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "run/settings_key.h"
#include "run/settings_value.h"

#include <string.h>

static struct settings_origin *find(const struct settings_origins *origins,
                                    const char *name)
{
    for (size_t i = 0; i < origins->count; i++) {
        if (strcmp(origins->items[i].name, name) == 0)
            return &origins->items[i];
    }
    return NULL;
}

const char *settings_origins_where(const struct settings_origins *origins,
                                   const char *name)
{
    const struct settings_origin *origin = find(origins, name);

    return origin != NULL ? origin->where : NULL;
}

void settings_origins_set(struct settings_origins *origins, const char *name,
                          const struct table_entry *entry, const char *where)
{
    struct buffer value = BUFFER_EMPTY;
    struct settings_origin *origin = find(origins, name);

    settings_value_write(settings_key_find(name), entry, &value);
    if (origin == NULL) {
        origins->items = mem_grow(origins->items, origins->count + 1,
                                  sizeof(*origins->items));
        origin = &origins->items[origins->count++];
        *origin = (struct settings_origin){
            .name = mem_copy_text(name, strlen(name))};
    }
    mem_free(origin->value);
    mem_free(origin->where);
    origin->value = mem_copy_text(value.data, value.len);
    origin->where = mem_copy_text(where, strlen(where));
    buffer_free(&value);
}

void settings_origins_free(struct settings_origins *origins)
{
    if (origins == NULL)
        return;
    for (size_t i = 0; i < origins->count; i++) {
        mem_free(origins->items[i].name);
        mem_free(origins->items[i].value);
        mem_free(origins->items[i].where);
    }
    mem_free(origins->items);
    mem_free(origins);
}
