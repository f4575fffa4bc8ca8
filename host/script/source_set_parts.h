/*
 * Source set parts -- what source_set.c and source_bundle.c share: the files of
 * one load and who requires which. Nobody else includes this.
 */
#ifndef HOST_SCRIPT_SOURCE_SET_PARTS_H
#define HOST_SCRIPT_SOURCE_SET_PARTS_H

#include "base/arena.h"
#include "script/source_set.h"

/* The names that a file requires. */
struct wanted {
    const char *module;
    struct wanted *next;
};

struct source_file {
    const char *chunk;
    struct text text;
    bool declares;               /* lies in the scripts folder itself */
    bool other;                  /* no Lua */
    bool late;                   /* named in a text, required by nobody yet */
    char digest[DIGEST_LEN + 1]; /* of the tokens */
    struct wanted *wanted;
    struct source_file *next;
};

/* What a name of require stands for. */
struct module {
    const char *name;
    struct source_file *file; /* NULL: none of the application */
    struct module *next;
};

struct source_set {
    struct arena arena;
    struct source_file *files;
    struct module *modules;
    bool sealed;
    struct source_digest *digests; /* made when asked for */
    size_t ndigests;
};

/** The module's record, made where it is missing. */
struct module *source_set_add_module(struct source_set *set, const char *name,
                                     struct source_file *file);

#endif
