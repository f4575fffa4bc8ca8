#include "run/state_diff.h"

#include "base/json.h"

struct walk {
    state_diff_fn fn;
    void *arg;
    struct buffer path;
};

static void compare(struct walk *walk, struct text stored,
                    struct text computed);

bool state_equal(struct text stored, struct text computed)
{
    if (stored.data == NULL || computed.data == NULL)
        return stored.data == computed.data;
    return text_equal(stored, computed);
}

static bool is_object(struct text json)
{
    return json.data != NULL && json_first(json).kind == JSON_OBJECT;
}

/* NULL data when the object has no such member. */
static struct text member_of(struct text object, struct text name)
{
    struct json_members members = json_members_of(json_first(object));
    struct buffer scratch = BUFFER_EMPTY;
    struct text found = TEXT_NONE;
    struct json_value value;
    struct text key;

    while (found.data == NULL &&
           json_members_next(&members, &scratch, &key, &value))
        if (text_equal(key, name))
            found = value.raw;
    buffer_free(&scratch);
    return found;
}

/* Every member of `one` beside that of `other`. `swapped` says that `one` is
 * the computed state: then only those that `other` has not. */
static void compare_members(struct walk *walk, struct text one,
                            struct text other, bool swapped)
{
    struct json_members members = json_members_of(json_first(one));
    struct buffer scratch = BUFFER_EMPTY;
    struct json_value value;
    struct text key;

    while (json_members_next(&members, &scratch, &key, &value)) {
        size_t len = walk->path.len;
        struct text there = member_of(other, key);

        if (swapped && there.data != NULL)
            continue; /* was compared from the other side */
        buffer_append_string(&walk->path, len > 0 ? "." : "");
        buffer_append_text(&walk->path, key);
        if (swapped)
            compare(walk, TEXT_NONE, value.raw);
        else
            compare(walk, value.raw, there);
        walk->path.len = len;
    }
    buffer_free(&scratch);
}

static void compare(struct walk *walk, struct text stored, struct text computed)
{
    if (state_equal(stored, computed))
        return;
    if (!is_object(stored) || !is_object(computed)) {
        walk->fn(walk->arg, buffer_text(&walk->path), stored, computed);
        return;
    }
    compare_members(walk, stored, computed, false);
    compare_members(walk, computed, stored, true);
}

void state_diff(struct text stored, struct text computed, state_diff_fn fn,
                void *arg)
{
    struct walk walk = {.fn = fn, .arg = arg, .path = BUFFER_EMPTY};

    compare(&walk, stored, computed);
    buffer_free(&walk.path);
}
