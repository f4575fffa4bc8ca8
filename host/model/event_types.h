/*
 * Event types -- what a script says of the types of its events: the newest
 * revision, how far back the steps of `upcast` reach, into which types a step
 * may split an event, and the fields of the payload. Stored events never
 * change: the steps run when an event is read (script/upcast.c).
 *
 * A type that is not declared is read as it is stored, whatever its revision.
 */
#ifndef HOST_MODEL_EVENT_TYPES_H
#define HOST_MODEL_EVENT_TYPES_H

#include "consumer/failure.h"
#include "model/declaration.h"

struct event_type {
    const char *name; /* "account.Opened" */
    const char *file; /* handlers/accounts.lua, relative to the app */
    int line;
    const char *returned_by; /* the file that the loader read */
    int revision;            /* the newest; 0 where the script says none */
    int oldest;              /* the lowest that a step starts from */
    /* types of the parts that a step may split an event into; may be empty */
    const struct text *into;
    size_t ninto;
    bool has_fields; /* the payload is checked by them at append */
    const struct declaration_field *fields; /* sorted by name */
    size_t nfields;
    size_t index; /* place in the list */
};

/** Sorted by name. Owned by the script until it closes. */
struct event_types {
    const struct event_type *items;
    size_t count;
};

/** The declaration of a type, NULL when there is none. */
const struct event_type *event_types_find(const struct event_types *types,
                                          struct text name);

enum event_age {
    EVENT_CURRENT,
    EVENT_OLDER,   /* steps lead from it to the newest */
    EVENT_NEWER,   /* another script has written it */
    EVENT_UNKNOWN, /* older than the first step */
};

enum event_age event_type_age(const struct event_type *type, int revision);

/** INVALID when no script could read an event of this type and revision once
 * it is stored: "an event of type ...". A type that is not declared passes. */
enum status event_types_admit(const struct event_types *types, struct text name,
                              int revision, struct diag *diag) MUST_CHECK;

/** Why an event of this revision cannot be read, which "is stored" so or came
 * to be in another way; a newer one waits for a script that knows it. */
void event_type_refuse(const struct event_type *type, int revision,
                       const char *how, struct failure *failure);

/** Whether an event of type `name` may have a part of one of the wanted
 * types, through as many splits as it takes. */
bool event_types_lead(const struct event_types *types, struct text name,
                      const struct text *wanted, size_t nwanted);

#endif
