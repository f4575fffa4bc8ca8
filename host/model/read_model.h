/*
 * Read model -- reads a keyed projection's query table for people: one key, or
 * those that match fields, in order.
 */
#ifndef HOST_MODEL_READ_MODEL_H
#define HOST_MODEL_READ_MODEL_H

#include "db/db.h"
#include "model/declaration.h"

struct read_model_where {
    const char *field; /* a declared field */
    /* As text; converted to the field's type. "" and "null" also find where
     * the field is absent. */
    const char *value;
};

struct read_model_request {
    const struct declaration *declaration;
    const char *key; /* NULL: all */
    const struct read_model_where *where;
    size_t nwhere;
    const char *order; /* a declared field or "key"; "-" before it: falling */
    int64_t limit;     /* 0: no limit */
};

/** Slices are valid during the call. */
typedef enum status (*read_model_fn)(void *arg, struct text key,
                                     struct text state, struct diag *diag);

/** USAGE: an unknown field (with the nearest), a value of the wrong type, a
 * projection that keeps no read models. */
enum status read_model_read(struct db *db,
                            const struct read_model_request *request,
                            read_model_fn fn, void *arg,
                            struct diag *diag) MUST_CHECK;

/** After read_model_read gave `failed` and its transaction is over: says so
 * when no host has made the table yet, or it is gone although the projection
 * `ran`; else leaves `diag` and gives `failed`. */
enum status read_model_explain(struct db *db,
                               const struct declaration *declaration, bool ran,
                               enum status failed,
                               struct diag *diag) MUST_CHECK;

#endif
