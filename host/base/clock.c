#include "base/clock.h"

#include <assert.h>
#include <time.h>

#define DAY_SECONDS INT64_C(86400)

int64_t clock_now(const struct clock *clock)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return clock_shift(clock,
                       (int64_t)now.tv_sec * CLOCK_SECOND + now.tv_nsec / 1000);
}

int64_t clock_shift(const struct clock *clock, int64_t time_us)
{
    if (clock == NULL)
        return time_us;
    return clock->stands ? clock->stands_at : time_us + clock->offset_us;
}

void clock_advance(struct clock *clock, int64_t us)
{
    assert(us >= 0);
    clock->offset_us += us;
    clock->stands_at += us;
}

void clock_stand(struct clock *clock, bool stands)
{
    clock->stands_at = clock_now(clock);
    clock->stands = stands;
}

int64_t clock_monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * CLOCK_SECOND + now.tv_nsec / 1000;
}

/*
 * Calendar. Years are counted from March, so that the leap day is the last of
 * its year; 400 years are one whole cycle of 146,097 days. Day 0 of the count
 * is 0000-03-01, 719,468 days before 1970-01-01.
 */
#define CYCLE_DAYS  146097
#define EPOCH_SHIFT 719468

static int64_t days_of_date(int year, int month, int day)
{
    int from_march = month > 2 ? month - 3 : month + 9;
    int64_t y = month > 2 ? year : year - 1;
    int64_t cycle = y >= 0 ? y / 400 : -1; /* -1: January, February of 0000 */
    int64_t in_cycle = y - cycle * 400;

    return cycle * CYCLE_DAYS + in_cycle * 365 + in_cycle / 4 - in_cycle / 100 +
           (153 * from_march + 2) / 5 + day - 1 - EPOCH_SHIFT;
}

static void date_of_days(int64_t days, int *year, int *month, int *day)
{
    int64_t shifted = days + EPOCH_SHIFT;
    int64_t cycle = shifted >= 0 ? shifted / CYCLE_DAYS
                                 : -1; /* see days_of_date */
    int in_cycle = (int)(shifted - cycle * CYCLE_DAYS);
    int y = (in_cycle - in_cycle / 1460 + in_cycle / 36524 -
             in_cycle / 146096) /
            365;
    int in_year = in_cycle - (365 * y + y / 4 - y / 100);
    int from_march = (5 * in_year + 2) / 153;

    *day = in_year - (153 * from_march + 2) / 5 + 1;
    *month = from_march < 10 ? from_march + 3 : from_march - 9;
    *year = (int)(cycle * 400) + y + (*month <= 2);
}

static int days_of_month(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30,
                                   31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

static void write_two(char *out, int value)
{
    out[0] = (char)('0' + value / 10);
    out[1] = (char)('0' + value % 10);
}

void clock_format(int64_t time_us, char out[CLOCK_TEXT_SIZE])
{
    int64_t seconds;
    int64_t days;
    int micros;
    int in_day;
    int year;
    int month;
    int day;

    if (time_us < CLOCK_MIN)
        time_us = CLOCK_MIN;
    if (time_us > CLOCK_MAX)
        time_us = CLOCK_MAX;
    /* Counted from 0000-01-01, so that no division sees a negative number. */
    seconds = (time_us - CLOCK_MIN) / CLOCK_SECOND;
    micros = (int)((time_us - CLOCK_MIN) % CLOCK_SECOND);
    days = seconds / DAY_SECONDS + CLOCK_MIN / (DAY_SECONDS * CLOCK_SECOND);
    in_day = (int)(seconds % DAY_SECONDS);
    date_of_days(days, &year, &month, &day);

    write_two(out, year / 100);
    write_two(out + 2, year % 100);
    out[4] = '-';
    write_two(out + 5, month);
    out[7] = '-';
    write_two(out + 8, day);
    out[10] = 'T';
    write_two(out + 11, in_day / 3600);
    out[13] = ':';
    write_two(out + 14, in_day / 60 % 60);
    out[16] = ':';
    write_two(out + 17, in_day % 60);
    out[19] = '.';
    write_two(out + 20, micros / 10000);
    write_two(out + 22, micros / 100 % 100);
    write_two(out + 24, micros % 100);
    out[26] = 'Z';
    out[27] = '\0';
}

/* What is read so far; `why` is set by the step that failed. */
struct reader {
    const char *at;
    const char *end;
    const char *why;
};

static bool refuse(struct reader *r, const char *why)
{
    r->why = why;
    return false;
}

/* Exactly `count` digits. */
static bool read_digits(struct reader *r, int count, int *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (r->at == r->end || *r->at < '0' || *r->at > '9')
            return refuse(r, "it must look like 2024-05-31T12:30:00Z");
        *value = *value * 10 + (*r->at++ - '0');
    }
    return true;
}

static bool read_char(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return refuse(r, "it must look like 2024-05-31T12:30:00Z");
    r->at++;
    return true;
}

static bool read_date(struct reader *r, int64_t *days)
{
    int year;
    int month;
    int day;

    if (!read_digits(r, 4, &year) || !read_char(r, '-') ||
        !read_digits(r, 2, &month) || !read_char(r, '-') ||
        !read_digits(r, 2, &day))
        return false;
    if (month < 1 || month > 12)
        return refuse(r, "there is no such month");
    if (day < 1 || day > days_of_month(year, month))
        return refuse(r, "there is no such day in that month");
    *days = days_of_date(year, month, day);
    return true;
}

static bool read_time(struct reader *r, int64_t *seconds)
{
    int hour;
    int minute;
    int second;

    if (!read_digits(r, 2, &hour) || !read_char(r, ':') ||
        !read_digits(r, 2, &minute) || !read_char(r, ':') ||
        !read_digits(r, 2, &second))
        return false;
    if (hour > 23)
        return refuse(r, "the hour goes from 00 to 23");
    if (minute > 59)
        return refuse(r, "the minute goes from 00 to 59");
    if (second == 60)
        return refuse(r, "a leap second has no place in this count of time");
    if (second > 59)
        return refuse(r, "the second goes from 00 to 59");
    *seconds = hour * INT64_C(3600) + minute * 60 + second;
    return true;
}

static bool read_fraction(struct reader *r, int64_t *micros)
{
    int64_t unit = CLOCK_SECOND;

    *micros = 0;
    if (r->at == r->end || *r->at != '.')
        return true;
    r->at++;
    if (r->at == r->end || *r->at < '0' || *r->at > '9')
        return refuse(r, "digits must follow the decimal point");
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        unit /= 10;
        if (unit == 0 && *r->at != '0')
            return refuse(r, "it is finer than a microsecond");
        *micros += (*r->at - '0') * unit;
    }
    return true;
}

static bool read_offset(struct reader *r, int64_t *seconds)
{
    int hours;
    int minutes;
    bool west;

    *seconds = 0;
    if (r->at == r->end)
        return refuse(r, "the offset from UTC is missing (Z or +01:00)");
    if (*r->at == 'Z' || *r->at == 'z') {
        r->at++;
        return true;
    }
    if (*r->at != '+' && *r->at != '-')
        return refuse(r, "an offset from UTC must follow (Z or +01:00)");
    west = *r->at++ == '-';
    if (!read_digits(r, 2, &hours) || !read_char(r, ':') ||
        !read_digits(r, 2, &minutes))
        return refuse(r, "an offset from UTC looks like +01:00");
    if (hours > 23 || minutes > 59)
        return refuse(r, "the offset from UTC is out of range");
    *seconds = hours * INT64_C(3600) + minutes * 60;
    if (west)
        *seconds = -*seconds;
    return true;
}

static bool read_timestamp(struct reader *r, int64_t *time_us)
{
    int64_t days;
    int64_t seconds;
    int64_t micros;
    int64_t offset;
    int64_t result;

    if (!read_date(r, &days))
        return false;
    if (r->at == r->end || (*r->at != 'T' && *r->at != 't'))
        return refuse(r, "a T must stand between date and time");
    r->at++;
    if (!read_time(r, &seconds) || !read_fraction(r, &micros) ||
        !read_offset(r, &offset))
        return false;
    if (r->at != r->end)
        return refuse(r, "something follows the offset from UTC");
    result = (days * DAY_SECONDS + seconds - offset) * CLOCK_SECOND + micros;
    if (result < CLOCK_MIN || result > CLOCK_MAX)
        return refuse(r, "in UTC its year is not within 0000 to 9999");
    *time_us = result;
    return true;
}

/* Two digits at `at`; sets *bad where there are none. */
static inline int two_digits(const char *at, unsigned *bad)
{
    unsigned tens = (unsigned)(unsigned char)at[0] - '0';
    unsigned ones = (unsigned)(unsigned char)at[1] - '0';

    *bad |= (unsigned)(tens > 9) | (unsigned)(ones > 9);
    return (int)(tens * 10 + ones);
}

/* The form that clock_format writes, which nearly every row has. */
static bool parse_own_form(const char *at, int64_t *time_us)
{
    unsigned bad = (unsigned)(at[4] != '-') | (unsigned)(at[7] != '-') |
                   (unsigned)(at[10] != 'T') | (unsigned)(at[13] != ':') |
                   (unsigned)(at[16] != ':') | (unsigned)(at[19] != '.') |
                   (unsigned)(at[26] != 'Z');
    int year = two_digits(at, &bad) * 100 + two_digits(at + 2, &bad);
    int month = two_digits(at + 5, &bad);
    int day = two_digits(at + 8, &bad);
    int hour = two_digits(at + 11, &bad);
    int minute = two_digits(at + 14, &bad);
    int second = two_digits(at + 17, &bad);
    int micros = two_digits(at + 20, &bad) * 10000 +
                 two_digits(at + 22, &bad) * 100 + two_digits(at + 24, &bad);

    if (bad != 0 || month < 1 || month > 12 || day < 1 ||
        day > days_of_month(year, month) || hour > 23 || minute > 59 ||
        second > 59)
        return false;
    *time_us = (days_of_date(year, month, day) * DAY_SECONDS +
                hour * INT64_C(3600) + minute * 60 + second) *
                   CLOCK_SECOND +
               micros;
    return true;
}

enum status clock_parse(struct text t, int64_t *time_us, struct diag *diag)
{
    struct reader r = {.at = t.data, .end = text_end(t)};
    char shown[64];

    if (t.len == CLOCK_TEXT_SIZE - 1 && parse_own_form(t.data, time_us))
        return STATUS_OK;
    if (read_timestamp(&r, time_us))
        return STATUS_OK;
    text_clean(t, shown, sizeof(shown));
    return diag_set(diag, STATUS_INVALID, "'%s' is not a valid time: %s", shown,
                    r.why);
}
