#include "base/text.h"

#include "base/utf8.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* First byte at or after `at` that is not ASCII. */
static const char *skip_ascii(const char *at, const char *end)
{
    uint64_t word;

    while (end - at >= 8) {
        memcpy(&word, at, 8);
        if ((word & HIGH_BITS) != 0)
            break;
        at += 8;
    }
    while (at < end && (*at & 0x80) == 0)
        at++;
    return at;
}

bool text_utf8_valid(struct text t)
{
    const char *at = t.data;
    const char *end = text_end(t);

    while ((at = skip_ascii(at, end)) < end) {
        size_t len = utf8_char(at, end);

        if (len == 0)
            return false;
        at += len;
    }
    return true;
}

size_t text_utf8_length(struct text t)
{
    size_t count = 0;

    for (size_t i = 0; i < t.len; i++)
        count += !UTF8_IS_TAIL(t.data[i]);
    return count;
}

size_t text_utf8_prefix(struct text t, size_t bytes)
{
    size_t cut = bytes;

    if (t.len <= bytes)
        return t.len;
    /* A character has at most three tail bytes; more is no UTF-8. */
    while (cut > 0 && bytes - cut < 4 && UTF8_IS_TAIL(t.data[cut]))
        cut--;
    return bytes - cut < 4 ? cut : bytes;
}

size_t text_utf8_prefix_chars(struct text t, size_t chars)
{
    size_t i;

    for (i = 0; i < t.len; i++) {
        if (UTF8_IS_TAIL(t.data[i]))
            continue;
        if (chars == 0)
            break;
        chars--;
    }
    return i;
}

void text_clean(struct text t, char *out, size_t size)
{
    const char *at = t.data;
    const char *end = text_end(t);
    size_t used = 0;

    if (size == 0)
        return;
    while (at < end) {
        size_t len = *at != '\0' ? utf8_char(at, end) : 0;
        bool bad = len == 0;

        if (bad)
            len = 1;
        if (used + len >= size)
            break;
        if (bad)
            out[used] = '?';
        else
            memcpy(out + used, at, len);
        used += len;
        at += len;
    }
    out[used] = '\0';
}

#define WORD_MAX 63 /* longer words are no typing errors of ours */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * Edit distance: one for an inserted, missing, wrong or swapped-with-neighbour
 * byte. Both words are at most WORD_MAX long.
 */
static size_t edit_distance(struct text a, struct text b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *older = rows[0];
    size_t *old = rows[1];
    size_t *row = rows[2];

    for (size_t j = 0; j <= b.len; j++)
        old[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *spare = older;

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t wrong = a.data[i - 1] != b.data[j - 1];

            row[j] = least(least(old[j], row[j - 1]) + 1, old[j - 1] + wrong);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                a.data[i - 2] == b.data[j - 1])
                row[j] = least(row[j], older[j - 2] + 1);
        }
        older = old;
        old = row;
        row = spare;
    }
    return old[b.len];
}

const char *text_nearest(const char *word, const char *const *candidates)
{
    size_t len = strlen(word);

    /* A third of the word may be wrong; one letter of a short word. */
    return text_nearest_within(word, candidates, len < 6 ? 1 : len / 3);
}

const char *text_nearest_within(const char *word, const char *const *candidates,
                                size_t wrong)
{
    struct text wanted = text_of(word);
    const char *nearest = NULL;
    size_t best = wrong + 1;

    if (wanted.len == 0 || wanted.len > WORD_MAX)
        return NULL;
    for (; *candidates != NULL; candidates++) {
        struct text candidate = text_of(*candidates);
        size_t distance;

        if (candidate.len > WORD_MAX)
            continue;
        distance = edit_distance(wanted, candidate);
        if (distance < best && distance < candidate.len) {
            best = distance;
            nearest = *candidates;
        }
    }
    return nearest;
}
