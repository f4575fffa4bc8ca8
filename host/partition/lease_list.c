#include "partition/lease_list.h"

struct lease_list lease_list_make(struct arena *arena, size_t room)
{
    return (struct lease_list){
        .types = arena_alloc(arena, (room + 1) * sizeof(struct text)),
        .names = arena_alloc(arena, (room + 1) * sizeof(struct text)),
        .partitions = arena_alloc(arena, (room + 1) * sizeof(int64_t)),
        .generations = arena_alloc(arena, (room + 1) * sizeof(int64_t)),
    };
}

void lease_list_add(struct lease_list *list, const char *type, const char *name,
                    int partition, int64_t generation)
{
    list->types[list->count] = text_of(type);
    list->names[list->count] = text_of(name);
    list->partitions[list->count] = partition;
    list->generations[list->count++] = generation;
}
