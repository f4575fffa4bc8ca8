/*
 * What json_check accepts can be walked and decoded without leaving its bytes,
 * and what it decodes can be written and read again. Input lies in memory of
 * its exact size, so that the sanitizer sees a byte too many.
 */
#include "base/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void round_trip(struct text text)
{
    struct buffer json = BUFFER_EMPTY;
    struct buffer back = BUFFER_EMPTY;

    require(text_utf8_valid(text));
    json_write_string(&json, text);
    require(json_check(buffer_text(&json), NULL, NULL) == STATUS_OK);
    json_decode_string(json_first(buffer_text(&json)), &back);
    require(text_equal(buffer_text(&back), text));
    buffer_free(&back);
    buffer_free(&json);
}

static void walk(struct json_value value, struct text whole)
{
    struct buffer scratch = BUFFER_EMPTY;
    struct json_members members;
    struct json_value member;
    struct text key;
    int64_t number;

    require(value.raw.len > 0 && value.raw.data >= whole.data &&
            value.raw.data + value.raw.len <= whole.data + whole.len);
    require(json_check(value.raw, NULL, NULL) == STATUS_OK);
    (void)json_decode_int64(value, &number);
    if (value.kind == JSON_STRING) {
        json_decode_string(value, &scratch);
        round_trip(buffer_text(&scratch));
    }
    if (value.kind == JSON_OBJECT) {
        members = json_members_of(value);
        while (json_members_next(&members, &scratch, &key, &member)) {
            round_trip(key);
            walk(member, value.raw);
        }
    }
    buffer_free(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    struct text text = {copy, size};
    size_t offset = 0;
    struct diag diag;

    if (size > 0)
        memcpy(copy, data, size);
    if (json_check(text, &offset, &diag) == STATUS_OK) {
        require(text_utf8_valid(text));
        walk(json_first(text), text);
    } else {
        require(offset <= size && text_utf8_valid(text_of(diag.message)));
    }
    free(copy);
    return 0;
}
