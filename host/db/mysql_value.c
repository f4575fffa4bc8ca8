#include "db/mysql_cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct text text_of_cell(const struct mysql_cell *cell)
{
    return (struct text){cell->buffer, cell->length};
}

static bool beyond_64_bits(const struct mysql_cell *cell)
{
    return cell->is_unsigned && cell->value.integer < 0;
}

/* Whole numbers come as DECIMAL from a sum, and as BIT from a flag. */
static bool as_integer(const struct mysql_cell *cell, int64_t *value)
{
    struct text text = text_of_cell(cell);
    bool negative = cell->decimal && text.len > 0 && text.data[0] == '-';

    *value = 0;
    if (mysql_cell_is_integer(cell)) {
        *value = cell->value.integer;
        return !beyond_64_bits(cell);
    }
    if (cell->type == MYSQL_TYPE_BIT && text.len <= 7) {
        for (size_t i = 0; i < text.len; i++)
            *value = *value << 8 | (unsigned char)text.data[i];
        return true;
    }
    if (!cell->decimal || text.len == 0)
        return false;
    for (size_t i = negative ? 1 : 0; i < text.len; i++) {
        int digit = text.data[i] - '0';

        if (digit < 0 || digit > 9 ||
            __builtin_mul_overflow(*value, 10, value) ||
            __builtin_sub_overflow(*value, digit, value))
            return false;
    }
    /* built below zero, where the smallest number has its place */
    return negative || !__builtin_sub_overflow(INT64_C(0), *value, value);
}

enum db_type mysql_value_type(const struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = mysql_cell_of(rows, column);
    int64_t value;

    if (cell == NULL || cell->is_null || cell->type == MYSQL_TYPE_NULL)
        return DB_NULL;
    if (as_integer(cell, &value))
        return DB_INT64;
    if (cell->decimal || mysql_cell_is_integer(cell))
        return DB_DECIMAL;
    if (mysql_cell_is_double(cell))
        return DB_DOUBLE;
    if (mysql_cell_is_time(cell))
        return DB_TIMESTAMP;
    return cell->binary ? DB_BYTES : DB_TEXT;
}

int64_t mysql_value_int64(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = mysql_cell_of(rows, column);
    int64_t value = 0;

    if (cell == NULL || cell->is_null || !as_integer(cell, &value)) {
        db_rows_mismatch(rows, column, "an integer");
        return 0;
    }
    return value;
}

double mysql_value_double(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = mysql_cell_of(rows, column);
    int64_t value;

    if (cell != NULL && !cell->is_null) {
        if (mysql_cell_is_double(cell))
            return cell->value.number;
        if (as_integer(cell, &value))
            return (double)value;
        if (cell->decimal)
            return strtod(cell->buffer, NULL);
    }
    db_rows_mismatch(rows, column, "a number");
    return 0;
}

bool mysql_value_bool(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = mysql_cell_of(rows, column);
    int64_t value = 2;

    if (cell == NULL || cell->is_null || !as_integer(cell, &value) ||
        (value != 0 && value != 1))
        db_rows_mismatch(rows, column, "a boolean (0 or 1)");
    return value == 1;
}

/* Days since 1970 of the Gregorian calendar, by eras of 400 years. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day -
                          1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 -
           year_of_era / 100 + day_of_year - 719468;
}

static int64_t time_of(const MYSQL_TIME *time)
{
    int64_t seconds = days_of(time->year, time->month, time->day) * 86400 +
                      (int64_t)time->hour * 3600 + (int64_t)time->minute * 60 +
                      time->second;

    return seconds * CLOCK_SECOND + (int64_t)time->second_part;
}

struct text mysql_value_text(struct db_rows *rows, size_t column)
{
    struct mysql_cell *cell = mysql_cell_of(rows, column);

    if (cell == NULL || cell->is_null || cell->type == MYSQL_TYPE_NULL)
        return TEXT_NONE;
    if (mysql_cell_is_time(cell)) {
        clock_format(time_of(&cell->value.time), cell->shown);
        return text_of(cell->shown);
    }
    if (mysql_cell_is_integer(cell) && beyond_64_bits(cell)) {
        (void)snprintf(cell->shown, sizeof(cell->shown), "%" PRIu64,
                       (uint64_t)cell->value.integer);
        return text_of(cell->shown);
    }
    if (mysql_cell_is_integer(cell) || mysql_cell_is_double(cell)) {
        db_rows_mismatch(rows, column, "text");
        return TEXT_NONE;
    }
    return text_of_cell(cell);
}

int64_t mysql_value_timestamp(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = mysql_cell_of(rows, column);

    if (cell == NULL || cell->is_null || !mysql_cell_is_time(cell)) {
        db_rows_mismatch(rows, column, "a time");
        return 0;
    }
    return time_of(&cell->value.time);
}

struct uuid mysql_value_uuid(struct db_rows *rows, size_t column)
{
    const struct mysql_cell *cell = mysql_cell_of(rows, column);
    struct uuid uuid = {{0}};

    if (cell == NULL || cell->is_null || mysql_cell_is_integer(cell) ||
        mysql_cell_is_double(cell) || mysql_cell_is_time(cell) ||
        !uuid_parse(text_of_cell(cell), &uuid))
        db_rows_mismatch(rows, column, "a UUID");
    return uuid;
}
