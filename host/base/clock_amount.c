/* Durations and sizes: a decimal number and a unit, exact or refused. */
#include "base/clock.h"

#include <stdio.h>

#define FRACTION_MAX 9 /* digits after the point, zeros at the end aside */

struct unit {
    const char *name;
    int64_t size;
};

struct amount_kind {
    const char *what;         /* "duration" */
    const char *examples;     /* how to write it right */
    const char *too_fine;     /* why a remainder is refused */
    int64_t bare;             /* the size of a number without a unit */
    const struct unit *units; /* ends with a NULL name */
};

static const struct unit duration_units[] = {
    {"ms", CLOCK_SECOND / 1000},     {"s", CLOCK_SECOND},
    {"m", CLOCK_SECOND * 60},        {"h", CLOCK_SECOND * 3600},
    {"d", CLOCK_SECOND * 24 * 3600}, {NULL, 0},
};

static const struct unit size_units[] = {
    {"B", 1},
    {"KB", INT64_C(1000)},
    {"MB", INT64_C(1000000)},
    {"GB", INT64_C(1000000000)},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {NULL, 0},
};

static const struct amount_kind duration_kind = {
    .what = "duration",
    .examples = "\"250ms\", \"10s\", \"5m\", \"2h\", \"7d\" or a number of "
                "seconds",
    .too_fine = "it is finer than a microsecond",
    .bare = CLOCK_SECOND,
    .units = duration_units,
};

static const struct amount_kind size_kind = {
    .what = "size",
    .examples =
        "\"512KiB\", \"64MiB\", \"1GiB\", \"10MB\" or a number of bytes",
    .too_fine = "it is no whole number of bytes",
    .bare = 1,
    .units = size_units,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t unit_size(const struct amount_kind *kind, struct text name)
{
    if (name.len == 0)
        return kind->bare;
    for (const struct unit *unit = kind->units; unit->name != NULL; unit++) {
        if (text_equal(text_of(unit->name), name))
            return unit->size;
    }
    return 0;
}

/* NULL, or why `t` is no amount. */
static const char *read_amount(const struct amount_kind *kind, struct text t,
                               int64_t *amount)
{
    const char *at = t.data;
    const char *end = text_end(t);
    int64_t whole = 0;
    int64_t fraction = 0;
    int64_t scale = 1;
    const char *zeros;
    int64_t unit;

    if (t.len == 0)
        return "it is empty";
    if (*at == '-')
        return "it must not be negative";
    if (!is_digit(*at))
        return "it must start with a digit";
    for (; at < end && is_digit(*at); at++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, *at - '0', &whole))
            return "it is too large";
    }
    if (at < end && *at == '.') {
        const char *first = ++at;

        while (at < end && is_digit(*at))
            at++;
        if (at == first)
            return "digits must follow the decimal point";
        for (zeros = at; zeros > first && zeros[-1] == '0';)
            zeros--;
        if (zeros - first > FRACTION_MAX)
            return "it has more than nine digits after the point";
        for (; first < zeros; first++) {
            fraction = fraction * 10 + (*first - '0');
            scale *= 10;
        }
    }
    unit = unit_size(kind, (struct text){at, (size_t)(end - at)});
    if (unit == 0)
        return "its unit is unknown";
    if (__builtin_mul_overflow(whole, unit, &whole))
        return "it is too large";
    /* Common powers of ten go first: then a day times nine digits fits. */
    while (scale > 1 && unit % 10 == 0) {
        scale /= 10;
        unit /= 10;
    }
    if (__builtin_mul_overflow(fraction, unit, &fraction) ||
        __builtin_add_overflow(whole, fraction / scale, &whole))
        return "it is too large";
    if (fraction % scale != 0)
        return kind->too_fine;
    *amount = whole;
    return NULL;
}

static enum status parse_amount(const struct amount_kind *kind, struct text t,
                                int64_t *amount, struct diag *diag)
{
    const char *why = read_amount(kind, t, amount);
    char shown[64];

    if (why == NULL)
        return STATUS_OK;
    text_clean(t, shown, sizeof(shown));
    return diag_set(diag, STATUS_INVALID,
                    "'%s' is not a valid %s: %s; write %s", shown, kind->what,
                    why, kind->examples);
}

enum status clock_parse_duration(struct text t, int64_t *us, struct diag *diag)
{
    return parse_amount(&duration_kind, t, us, diag);
}

enum status clock_parse_size(struct text t, int64_t *bytes, struct diag *diag)
{
    return parse_amount(&size_kind, t, bytes, diag);
}

void clock_format_duration(int64_t us, char out[CLOCK_DURATION_SIZE])
{
    const char *unit = "s";
    double value = (double)us / (double)CLOCK_SECOND;

    if (us % CLOCK_SECOND != 0 && us % (CLOCK_SECOND / 1000) == 0) {
        unit = "ms";
        value *= 1000;
    }
    snprintf(out, CLOCK_DURATION_SIZE, "%.15g%s", value, unit);
}
