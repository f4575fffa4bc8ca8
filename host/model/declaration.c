#include "model/declaration.h"

#include "consumer/registry.h"

const char *declaration_kind_word(enum declaration_kind kind)
{
    switch (kind) {
    case DECLARATION_PROJECTION:
        return "projection";
    case DECLARATION_SQL_PROJECTION:
        return "sql_projection";
    case DECLARATION_AGGREGATE:
        return "aggregate";
    case DECLARATION_LISTENER:
        return "listener";
    case DECLARATION_SAGA:
        return "saga";
    }
    return "";
}

const char *declaration_consumer_type(const struct declaration *declaration)
{
    switch (declaration->kind) {
    case DECLARATION_LISTENER:
        return CONSUMER_TYPE_LISTENER;
    case DECLARATION_SAGA:
        return CONSUMER_TYPE_SAGA;
    default:
        return CONSUMER_TYPE_PROJECTION;
    }
}

const char *declaration_unknown_word(enum saga_unknown unknown)
{
    switch (unknown) {
    case SAGA_UNKNOWN_IGNORE:
        return "ignore";
    case SAGA_UNKNOWN_DEAD_LETTER:
        return "dead_letter";
    case SAGA_UNKNOWN_ERROR:
        return "error";
    }
    return "";
}

const char *declaration_field_word(enum field_type type)
{
    switch (type) {
    case FIELD_TEXT:
        return "text";
    case FIELD_INTEGER:
        return "integer";
    case FIELD_DOUBLE:
        return "double";
    case FIELD_DECIMAL:
        return "decimal";
    case FIELD_BOOLEAN:
        return "boolean";
    case FIELD_DATE:
        return "date";
    case FIELD_TIME:
        return "time";
    case FIELD_TIMESTAMP:
        return "timestamp";
    case FIELD_UUID:
        return "uuid";
    case FIELD_ENUM:
        return "enum";
    case FIELD_BYTES:
        return "bytes";
    case FIELD_LIST:
        return "list";
    case FIELD_SET:
        return "set";
    case FIELD_RECORD:
        return "record";
    }
    return "";
}

enum db_kind declaration_field_kind(enum field_type type)
{
    switch (type) {
    case FIELD_TEXT:
    case FIELD_ENUM:
        return DB_KIND_TEXT;
    case FIELD_INTEGER:
        return DB_KIND_INTEGER;
    case FIELD_DOUBLE:
        return DB_KIND_DOUBLE;
    case FIELD_DECIMAL:
        return DB_KIND_DECIMAL;
    case FIELD_BOOLEAN:
        return DB_KIND_BOOLEAN;
    case FIELD_DATE:
        return DB_KIND_DATE;
    case FIELD_TIME:
        return DB_KIND_TIME;
    case FIELD_TIMESTAMP:
        return DB_KIND_TIMESTAMP;
    case FIELD_UUID:
        return DB_KIND_UUID;
    case FIELD_BYTES:
        return DB_KIND_BYTES;
    case FIELD_LIST:
    case FIELD_SET:
    case FIELD_RECORD:
        break;
    }
    return DB_KIND_OTHER;
}
