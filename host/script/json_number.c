#include "script/json_number.h"

#include "script/int64.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The digits of an integer, written from the right. */
void json_number_write_integer(struct buffer *out, int64_t value)
{
    char digits[24], *at = digits + sizeof(digits);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0)
        *--at = '-';
    buffer_append(out, at, (size_t)(digits + sizeof(digits) - at));
}

/* printf and strtod follow the locale alike, so the round trip can be tried
 * first; then whatever stands for the point becomes one. */
static void write_double(struct buffer *out, double number)
{
    char text[64], *to = text;
    bool plain = true; /* digits only so far */

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    for (const char *from = text; *from != '\0'; from++) {
        bool known = (*from >= '0' && *from <= '9') || *from == '-' ||
                     *from == '+' || *from == 'e';

        if (known)
            *to++ = *from;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
        plain = plain && known && *from != 'e';
    }
    buffer_append(out, text, (size_t)(to - text));
    if (plain)
        buffer_append(out, ".0", 2);
}

bool json_number_write(struct buffer *out, lua_Number number)
{
    if (isnan(number) || isinf(number))
        return false;
    if (number >= -(lua_Number)INT64_EXACT &&
        number <= (lua_Number)INT64_EXACT &&
        number == (lua_Number)(int64_t)number &&
        (number != 0 || !signbit(number)))
        json_number_write_integer(out, (int64_t)number);
    else if (number == 0)
        buffer_append(out, "-0", 2);
    else
        write_double(out, number);
    return true;
}
