/*
 * Source set -- the files that one load of an application has read: their
 * bytes, which are its version, and their tokens: which file requires which,
 * and a digest of a file with all that it requires. For that digest comments,
 * white space, the place of the application's folder and the order of loading
 * do not count.
 *
 * Lives as long as the script (state->sources) and is told by the loader and
 * by require; once it is sealed, require reads from it and never from the
 * disk, so that what a handler requires late is of the version that runs.
 * Never raises.
 */
#ifndef HOST_SCRIPT_SOURCE_SET_H
#define HOST_SCRIPT_SOURCE_SET_H

#include "base/digest.h"

#include <stdbool.h>

struct script_state;
struct source_set; /* script/source_set.c */

struct source_set *source_set_new(void);
void source_set_free(struct source_set *set); /* NULL is allowed */

/** A file that was read: its chunk name ("handlers/x.lua"), and the name it
 * is required by (NULL: it is a file of declarations). Everything is copied. */
void source_set_add(struct source_set *set, const char *chunk,
                    const char *module, struct text source);

/** A file that was read and is no Lua (tables = "sql/x.sql"): it counts for the
 * version only. */
void source_set_add_other(struct source_set *set, const char *path,
                          struct text content);

/** The file `chunk` has asked for `module`, by a name of any origin. */
void source_set_require(struct source_set *set, const char *chunk,
                        const char *module);

/** The text of a file that was read, TEXT_NONE for another. */
struct text source_set_text(const struct source_set *set, const char *chunk);

/** Reads what is required by a name in the text and was not read yet, and
 * takes no more from then on. */
void source_set_seal(struct source_set *set, const struct script_state *state);
/** File number `n` of those that sealing has read: nobody has compiled them
 * yet. False: there are no more. */
bool source_set_late(const struct source_set *set, size_t n, const char **chunk,
                     struct text *source);
/** Number `n` of the files of declarations, as they are sorted. */
bool source_set_declaring(const struct source_set *set, size_t n,
                          const char **chunk, struct text *source);
bool source_set_is_sealed(const struct source_set *set);

/** What require(module) loads, as it was read; false when no file that was
 * read is required by this name. */
bool source_set_module(const struct source_set *set, const char *module,
                       const char **chunk, struct text *source);

/** One file of a version. */
struct source_digest {
    const char *file; /* "handlers/x.lua" */
    char digest[DIGEST_LEN + 1];
};

/** All files that were read, sorted by name; owned by the set. */
const struct source_digest *source_set_files(struct source_set *set,
                                             size_t *count);

/** The digest of all names and bytes: equal only for equal files. */
void source_set_version(struct source_set *set, char out[DIGEST_LEN + 1]);

/**
 * The digest of the file's tokens and of those of every file it requires, by
 * the module's name, transitively. What is required in a function that was
 * not called yet counts if its name stands in the text; such a file is read
 * now. Modules of the host and of libraries do not count.
 */
void source_set_digest(struct source_set *set, const struct script_state *state,
                       const char *chunk, char out[DIGEST_LEN + 1]);

/** Adds the tokens of the bytes from..to-1. */
void source_set_tokens(struct digest *digest, struct text source, size_t from,
                       size_t to);

#endif
