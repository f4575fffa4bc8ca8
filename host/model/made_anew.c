#include "model/made_anew.h"

#include "base/memory.h"

/* So many keys are remembered. */
#define MADE_MAX 200000

void made_anew_begin(struct made_anew *made, int64_t epoch)
{
    if (made->epoch == epoch)
        return;
    map_clear(&made->keys);
    arena_reset(&made->arena);
    made->epoch = epoch;
}

static int64_t new_place(struct made_anew *made, struct text key)
{
    int64_t place = (int64_t)made->keys.count;
    bool added;

    if (made->keys.count == made->capacity) {
        made->capacity = made->capacity == 0 ? 512 : 2 * made->capacity;
        made->ids = mem_grow(made->ids, made->capacity, sizeof(*made->ids));
    }
    return map_put(&made->keys, arena_copy(&made->arena, key), place, &added);
}

void made_anew_remember(struct made_anew *made, struct text key,
                        const struct uuid *message_id)
{
    int64_t place = map_get(&made->keys, key);

    if (place == MAP_ABSENT && made->keys.count < MADE_MAX)
        place = new_place(made, key);
    if (place != MAP_ABSENT)
        made->ids[place] = *message_id;
}

bool made_anew_has(const struct made_anew *made, struct text key,
                   const struct uuid *message_id)
{
    int64_t place = map_get(&made->keys, key);

    return place != MAP_ABSENT && uuid_equal(&made->ids[place], message_id);
}

void made_anew_free(struct made_anew *made)
{
    map_free(&made->keys);
    mem_free(made->ids);
    arena_free(&made->arena);
}
