/*
 * JSON place -- where inside a value the codec stands, for its errors.
 */
#ifndef HOST_SCRIPT_JSON_PLACE_H
#define HOST_SCRIPT_JSON_PLACE_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

/** A step from a container to what is in it; linked on the C stack. */
struct json_place {
    const struct json_place *up; /* NULL: the root */
    const void *table;           /* the container (encode), for cycles */
    struct text key;             /* of an object's member */
    int64_t index;               /* of an array's item, from 1; else 0 */
    int depth;
};

#define JSON_PLACE_SIZE 512 /* of a path as text */

/** "state.items[3].price"; a long one loses its middle steps. */
void json_place_path(const struct json_place *place, const char *root,
                     char out[JSON_PLACE_SIZE]);

/** INVALID: "<path>: <message>". */
enum status json_place_fail(const struct json_place *place, const char *root,
                            struct diag *diag, const char *format, ...)
    PRINTF_LIKE(4, 5);

#endif
