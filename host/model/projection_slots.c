#include "model/projection_slots.h"

#include "base/memory.h"

/* A read of the slots under way. */
struct reading {
    struct projection_slots *slots;
    const struct read_model_table *table;
    size_t nfields;
    int64_t replay_epoch;
    struct arena *arena;
};

void projection_slots_begin(struct projection_slots *slots)
{
    slots->count = 0;
    map_clear(&slots->keys);
}

void projection_slots_free(struct projection_slots *slots)
{
    map_free(&slots->keys);
    mem_free(slots->slots);
    made_anew_free(&slots->made);
    mem_free(slots->asked);
}

size_t projection_slots_of(struct projection_slots *slots, struct text key)
{
    bool added;
    int64_t index = map_put(&slots->keys, key, (int64_t)slots->count, &added);

    if (!added)
        return (size_t)index;
    if (slots->count == slots->capacity) {
        slots->capacity = slots->capacity == 0 ? 512 : 2 * slots->count;
        slots->slots = mem_grow(slots->slots, slots->capacity,
                                sizeof(*slots->slots));
    }
    slots->slots[slots->count] = (struct projection_slot){
        .key = key,
        .last_unit = PROJECTION_NO_UNIT,
        .changed_by = PROJECTION_NO_UNIT,
        .entry = PROJECTION_TOPIC_NONE,
    };
    return slots->count++;
}

static enum status slot_stored(void *arg, size_t index, struct db_rows *row,
                               struct diag *diag)
{
    const struct reading *reading = arg;
    struct projection_slot *slot = &reading->slots->slots[index];

    (void)diag;
    slot->stored = slot->present = true;
    slot->read_id = db_get_uuid(row, 0);
    slot->json = arena_copy(reading->arena, db_get_text(row, 1));
    slot->fields = arena_alloc(reading->arena,
                               reading->nfields * sizeof(*slot->fields) + 1);
    read_model_table_take(reading->table, row, reading->arena, slot->fields,
                          &slot->unknown);
    return STATUS_OK;
}

/* What an older rebuild, or none, has made counts as absent in a replay. One
 * written past the projection has no epoch, and is what it is. */
static void slot_epoch(void *arg, size_t index, int64_t epoch)
{
    const struct reading *reading = arg;
    struct projection_slots *slots = reading->slots;
    struct projection_slot *slot = &slots->slots[slots->asked[index]];

    slot->stale = epoch < reading->replay_epoch;
    slot->present = !slot->stale;
    if (epoch == reading->replay_epoch)
        made_anew_remember(&slots->made, slot->key, &slot->read_id);
}

/* Asks for the epochs of the stored slots that are not known to be new. */
static enum status read_epochs(struct reading *reading, struct db *db,
                               struct diag *diag)
{
    struct projection_slots *slots = reading->slots;
    struct text *keys = arena_alloc(reading->arena,
                                    slots->count * sizeof(*keys) + 1);
    size_t count = 0;

    made_anew_begin(&slots->made, reading->replay_epoch);
    if (slots->count > slots->asked_capacity) {
        slots->asked_capacity = slots->count;
        slots->asked = mem_grow(slots->asked, slots->count,
                                sizeof(*slots->asked));
    }
    for (size_t i = 0; i < slots->count; i++) {
        const struct projection_slot *slot = &slots->slots[i];

        if (!slot->stored ||
            made_anew_has(&slots->made, slot->key, &slot->read_id))
            continue;
        slots->asked[count] = i;
        keys[count++] = slot->key;
    }
    if (count == 0)
        return STATUS_OK;
    return read_model_table_epochs(reading->table, db, keys, count, slot_epoch,
                                   reading, diag);
}

enum status projection_slots_read(struct projection_slots *slots,
                                  const struct read_model_table *table,
                                  size_t nfields, int64_t replay_epoch,
                                  struct db *db, struct arena *arena,
                                  struct diag *diag)
{
    struct reading reading = {slots, table, nfields, replay_epoch, arena};
    struct text *keys = arena_alloc(arena, slots->count * sizeof(*keys) + 1);
    enum status status;

    for (size_t i = 0; i < slots->count; i++)
        keys[i] = slots->slots[i].key;
    status = db_lookup(db, &table->lookup, keys, slots->count, slot_stored,
                       &reading, diag);
    if (status == STATUS_OK && replay_epoch > 0)
        status = read_epochs(&reading, db, diag);
    return status;
}
