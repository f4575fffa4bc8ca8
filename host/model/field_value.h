/*
 * Field value -- text as a value of a declared field: what `read --where`
 * compares with. Dates, times, timestamps and ids are checked and normalised
 * the way they are stored.
 */
#ifndef HOST_MODEL_FIELD_VALUE_H
#define HOST_MODEL_FIELD_VALUE_H

#include "db/value.h"
#include "model/declaration.h"

/** INVALID says what the type wants. The value borrows `text`. */
enum status field_value_parse(const struct declaration_field *field,
                              struct text text, struct db_value *value,
                              struct diag *diag) MUST_CHECK;

/** True for YYYY-MM-DD of a day that exists. */
bool field_value_is_date(struct text text);
/** True for HH:MM:SS with up to 6 fractional digits. */
bool field_value_is_time(struct text text);

#endif
