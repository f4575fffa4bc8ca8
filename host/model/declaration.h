/*
 * Declaration -- what a script declares, in C. Built by script/declare.c from
 * the checked Lua table; immutable and owned by the script until it closes.
 */
#ifndef HOST_MODEL_DECLARATION_H
#define HOST_MODEL_DECLARATION_H

#include "base/text.h"
#include "consumer/fingerprint.h"
#include "consumer/policy.h"
#include "db/shape.h"
#include "schema/query_table.h"

#include <stdbool.h>
#include <stdint.h>

enum declaration_kind {
    DECLARATION_PROJECTION,     /* keyed: state per key in a query table */
    DECLARATION_SQL_PROJECTION, /* writes tables of its own through ctx */
    DECLARATION_AGGREGATE,      /* no consumer: decides on commands */
    DECLARATION_LISTENER,       /* causes effects, once per message */
    DECLARATION_SAGA,           /* keeps the state of processes, too */
};

/** What becomes of an event that begins no saga and finds none. */
enum saga_unknown {
    SAGA_UNKNOWN_IGNORE,
    SAGA_UNKNOWN_DEAD_LETTER,
    SAGA_UNKNOWN_ERROR, /* a failed attempt: the saga may begin yet */
};

/** Type of a declared field, for columns and for the check of values. */
enum field_type {
    FIELD_TEXT,
    FIELD_INTEGER,
    FIELD_DOUBLE,
    FIELD_DECIMAL,
    FIELD_BOOLEAN,
    FIELD_DATE,
    FIELD_TIME,
    FIELD_TIMESTAMP,
    FIELD_UUID,
    FIELD_ENUM,
    FIELD_BYTES,
    /* of payloads only: no column holds them */
    FIELD_LIST,
    FIELD_SET,
    FIELD_RECORD,
};

struct declaration_field {
    const char *name;
    enum field_type type;
    int precision, scale;
    bool unique;
    bool optional;             /* may be nil or null in the state */
    const char *const *values; /* ENUM: the words, NULL-terminated */
    /* LIST, SET: one, of the items; RECORD: its fields, sorted by name */
    const struct declaration_field *inner;
    size_t ninner;
};

struct saga_step_rule; /* model/saga_steps.h */

struct declaration {
    enum declaration_kind kind;
    const char *name; /* "account-summary": the consumer's name */
    const char *file; /* handlers/accounts.lua, relative to the app */
    int line;
    const char *source; /* topic: "event-store" */
    int64_t revision;
    /* wanted messages: types that have a handler; aggregate types or none */
    const struct text *types;
    size_t ntypes;
    /* stored types to read for that: `types` first, then those of which a part
     * may have one of them (model/event_types.h) */
    const struct text *stored;
    size_t nstored;
    const struct text *aggregates;
    size_t naggregates;
    bool passes_gaps;       /* on_missing_history = "continue" */
    bool single_owner;      /* distribution = "single-owner" */
    bool rebuild_on_change; /* on_change = "rebuild" */
    bool own_key;           /* a key function: keys are not the message's own */
    /* of what the declaration does not say itself, the configuration's */
    struct failure_policy policy;
    /* keyed projections */
    const char *table; /* query table */
    const struct declaration_field *fields;
    size_t nfields;
    bool topic;        /* topic = true: on without a reader, too */
    bool every_change; /* changes = "every" */
    /* SQL projections */
    const char *tables_file; /* path of the DDL for this dialect, or NULL */
    struct text tables_sql;  /* its content */
    bool resettable;         /* has a reset function */
    /* aggregates: `types` are those of `apply` */
    const struct text *commands; /* sorted */
    size_t ncommands;
    int64_t snapshot_every; /* events between two snapshots; 0: none */
    int snapshot_version;
    /* listeners */
    bool starts_now; /* start = "now": what was there before is not for it */
    /* sagas: the key function is their `id`, and they start as listeners do */
    const bool *starts; /* one per type: it begins a saga */
    enum saga_unknown unknown;
    const struct text *deadlines; /* names that have a handler, sorted */
    size_t ndeadlines;
    const struct saga_step_rule *steps; /* of an orchestrated saga */
    size_t nsteps;
    bool tells_end; /* has an on_end function */
    struct fingerprint fingerprint;
    size_t index; /* place in the script's list: names it in handler calls */
};

/** Word for messages: "projection", "sql_projection", "listener", "saga". */
const char *declaration_kind_word(enum declaration_kind kind);

/** The consumer type it runs as (consumer/registry.h). */
const char *declaration_consumer_type(const struct declaration *declaration);

/** Whether what it derived is compared with its fingerprint, and can be derived
 * anew. */
static inline bool
declaration_is_projection(const struct declaration *declaration)
{
    return declaration->kind == DECLARATION_PROJECTION ||
           declaration->kind == DECLARATION_SQL_PROJECTION;
}

/** "ignore", "dead_letter", "error". */
const char *declaration_unknown_word(enum saga_unknown unknown);

/** Word of moontide.types: "text", "integer" ... */
const char *declaration_field_word(enum field_type type);

/** The column kind a field is stored in. */
enum db_kind declaration_field_kind(enum field_type type);

#endif
