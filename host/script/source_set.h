/*
 * Source set -- the files that one load of an application has read, as
 * streams of tokens: which file requires which, and a digest of a file with
 * all that it requires. Comments, white space, the place of the application's
 * folder and the order of loading do not count.
 *
 * Lives while scripts are loaded (state->sources) and is told by the loader
 * and by require. Never raises.
 */
#ifndef HOST_SCRIPT_SOURCE_SET_H
#define HOST_SCRIPT_SOURCE_SET_H

#include "base/digest.h"

struct script_state;
struct source_set; /* script/source_set.c */

struct source_set *source_set_new(void);
void source_set_free(struct source_set *set); /* NULL is allowed */

/** A file that was read: its chunk name ("handlers/x.lua"), and the name it
 * is required by (NULL: it is a file of declarations). Everything is copied. */
void source_set_add(struct source_set *set, const char *chunk,
                    const char *module, struct text source);

/** The file `chunk` has asked for `module`, by a name of any origin. */
void source_set_require(struct source_set *set, const char *chunk,
                        const char *module);

/** The text of a file that was read, TEXT_NONE for another. */
struct text source_set_text(const struct source_set *set, const char *chunk);

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
