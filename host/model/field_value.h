/*
 * Field value -- text as a value of a declared field, checked and normalised
 * the way it is stored. States keep such values as strings (script/value.c),
 * and `read --where` is given text.
 */
#ifndef HOST_MODEL_FIELD_VALUE_H
#define HOST_MODEL_FIELD_VALUE_H

#include "base/arena.h"
#include "db/value.h"
#include "model/declaration.h"

/**
 * The value of a field whose values are text: text, enum, decimal (with the
 * declared number of digits behind the point), date, time (zeros at the end
 * cut off), timestamp, uuid, bytes (base64). Bytes are copied to `arena`.
 * False when it is none; *wants then says what the field takes.
 */
bool field_value_from_text(const struct declaration_field *field,
                           struct text text, struct arena *arena,
                           struct db_value *value, const char **wants);

/** What an enum takes, "one of open, closed", in the arena. */
const char *field_value_words(const struct declaration_field *field,
                              struct arena *arena);

/** The same for every type: numbers and booleans are read from the text.
 * INVALID says what the field takes. */
enum status field_value_parse(const struct declaration_field *field,
                              struct text text, struct arena *arena,
                              struct db_value *value,
                              struct diag *diag) MUST_CHECK;

#endif
