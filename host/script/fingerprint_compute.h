/*
 * Fingerprint compute -- the fingerprint (consumer/fingerprint.h) of what a
 * script declares. The same text gives the same fingerprint in every process,
 * whatever the folder, the comments and the order of files.
 */
#ifndef HOST_SCRIPT_FINGERPRINT_COMPUTE_H
#define HOST_SCRIPT_FINGERPRINT_COMPUTE_H

#include "script/declare.h"

/** Where the code of a declaration comes from. */
struct fingerprint_code {
    const char *file;      /* chunk of the file that returned it */
    const char *key_field; /* of moontide.by, else NULL */
    int key;               /* reference of the key function, or LUA_NOREF */
};

/** Fills declaration->fingerprint; the state's source set is open. */
void fingerprint_compute(lua_State *L, struct declaration *declaration,
                         const struct fingerprint_code *code,
                         const struct declare_set *set);

#endif
