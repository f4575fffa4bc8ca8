#include "consumer/fingerprint.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define REVISION_BASE 36

static const char *const part_words[] = {
    [FINGERPRINT_SOURCES] = "sources",
    [FINGERPRINT_KEY] = "key",
    [FINGERPRINT_SHAPE] = "shape",
    [FINGERPRINT_CODE] = "code",
};

static const char *const descriptions[] = {
    [FINGERPRINT_SOURCES] = "its source, aggregates or event types",
    [FINGERPRINT_KEY] = "its key or number of partitions",
    [FINGERPRINT_SHAPE] = "its stored shape (fields, tables)",
    [FINGERPRINT_CODE] = "its code",
};

const char *fingerprint_part_word(enum fingerprint_part part)
{
    return part_words[part];
}

/* Base 36, so that the largest revision leaves room for the digest. */
void fingerprint_set_code(struct fingerprint *fingerprint, int64_t revision,
                          const char *digest)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char *part = fingerprint->part[FINGERPRINT_CODE];
    char number[16];
    size_t at = sizeof(number) - 1;
    int len;

    number[at] = '\0';
    do {
        number[--at] = digits[revision % REVISION_BASE];
        revision /= REVISION_BASE;
    } while (revision > 0 && at > 0);
    len = snprintf(part, sizeof(fingerprint->part[0]), "%s.%s", number + at,
                   digest);
    assert(len > 0 && len <= FINGERPRINT_PART_MAX);
    (void)len;
}

static long long revision_of(const struct fingerprint *fingerprint)
{
    return strtoll(fingerprint->part[FINGERPRINT_CODE], NULL, REVISION_BASE);
}

/* --- the column's text
 * ---------------------------------------------------------------- */

/* Takes four parts off the front of *text, and the sign behind them. */
static bool take_four(struct text *text, struct fingerprint *out)
{
    for (int p = 0; p < FINGERPRINT_PARTS; p++) {
        size_t len = 0;

        while (len < text->len && text->data[len] != ',' &&
               text->data[len] != ';')
            len++;
        if (len == 0 || len > FINGERPRINT_PART_MAX)
            return false;
        memcpy(out->part[p], text->data, len);
        out->part[p][len] = '\0';
        if (p < FINGERPRINT_CODE) {
            if (len == text->len || text->data[len] != ',')
                return false;
            len++;
        }
        text->data += len;
        text->len -= len;
    }
    return true;
}

/* False: NULL, or nothing that this program has written. */
static bool parse(struct text stored, struct fingerprint *current,
                  struct fingerprint *before, bool *has_before)
{
    *has_before = false;
    if (stored.data == NULL || !take_four(&stored, current))
        return false;
    if (stored.len == 0)
        return true;
    if (*stored.data != ';')
        return false;
    stored.data++;
    stored.len--;
    *has_before = true;
    return take_four(&stored, before) && stored.len == 0;
}

static void append_four(struct buffer *text, const struct fingerprint *four)
{
    for (int p = 0; p < FINGERPRINT_PARTS; p++)
        buffer_printf(text, "%s%s", p > 0 ? "," : "", four->part[p]);
}

static void format(const struct fingerprint *current,
                   const struct fingerprint *before,
                   char out[FINGERPRINT_MAX + 1])
{
    struct buffer text = BUFFER_EMPTY;

    append_four(&text, current);
    if (before != NULL) {
        buffer_append_char(&text, ';');
        append_four(&text, before);
    }
    assert(text.len <= FINGERPRINT_MAX);
    memcpy(out, text.data, text.len + 1);
    buffer_free(&text);
}

static bool same(const struct fingerprint *a, const struct fingerprint *b,
                 int parts)
{
    for (int p = 0; p < parts; p++)
        if (strcmp(a->part[p], b->part[p]) != 0)
            return false;
    return true;
}

bool fingerprint_equal(const struct fingerprint *a, const struct fingerprint *b)
{
    return same(a, b, FINGERPRINT_PARTS);
}

void fingerprint_accept(struct text stored, const struct fingerprint *declared,
                        char out[FINGERPRINT_MAX + 1])
{
    struct fingerprint current, before;
    bool has_before;
    bool good = parse(stored, &current, &before, &has_before);

    format(declared, good && has_before ? &before : NULL, out);
}

void fingerprint_rebuild(struct text stored, const struct fingerprint *declared,
                         char out[FINGERPRINT_MAX + 1])
{
    struct fingerprint current, before;
    bool has_before;

    if (!parse(stored, &current, &before, &has_before))
        format(declared, NULL, out);
    else if (same(&current, declared, FINGERPRINT_PARTS))
        format(declared, has_before ? &before : NULL, out);
    else
        format(declared, &current, out);
}

/* --- comparison
 * -------------------------------------------------------------------- */

struct fingerprint_change
fingerprint_compare(struct text stored, const struct fingerprint *declared)
{
    struct fingerprint_change change = {.verdict = FINGERPRINT_EQUAL};
    struct fingerprint current, before;
    bool has_before;
    bool good = parse(stored, &current, &before, &has_before);

    if (stored.data == NULL) {
        change.verdict = FINGERPRINT_NEW;
        return change;
    }
    for (int p = 0; p < FINGERPRINT_PARTS; p++)
        change.part[p] = !good ||
                         strcmp(current.part[p], declared->part[p]) != 0;
    if (change.part[FINGERPRINT_SOURCES] || change.part[FINGERPRINT_KEY] ||
        change.part[FINGERPRINT_SHAPE]) {
        change.verdict = FINGERPRINT_CHANGED;
        change.reverted = good && has_before &&
                          same(&before, declared, FINGERPRINT_CODE);
    } else if (change.part[FINGERPRINT_CODE]) {
        change.verdict = revision_of(declared) > revision_of(&current)
                             ? FINGERPRINT_REBUILD_DUE
                             : FINGERPRINT_OLDER_CODE;
    }
    return change;
}

void fingerprint_describe(const struct fingerprint_change *change,
                          struct buffer *out)
{
    int left = 0;
    bool any = false;

    for (int p = 0; p < FINGERPRINT_PARTS; p++)
        left += change->part[p] ? 1 : 0;
    for (int p = 0; p < FINGERPRINT_PARTS; p++) {
        if (!change->part[p])
            continue;
        if (any)
            buffer_append_string(out, left == 1 ? " and " : ", ");
        buffer_append_string(out, descriptions[p]);
        any = true;
        left--;
    }
}
