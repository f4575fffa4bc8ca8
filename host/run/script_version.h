/*
 * Script version -- what one set of scripts is, apart from the Lua state that
 * it was loaded into: the digests of its files and the fingerprints of what
 * they declare. For the log, for status, and for telling what a reload
 * changes.
 */
#ifndef HOST_RUN_SCRIPT_VERSION_H
#define HOST_RUN_SCRIPT_VERSION_H

#include "base/arena.h"
#include "base/buffer.h"
#include "consumer/fingerprint.h"
#include "script/script.h"

struct script_version_consumer {
    const char *kind; /* "projection" */
    const char *name;
    struct fingerprint fingerprint;
};

/** Plain data in its arena; freed with script_version_free. */
struct script_version {
    struct arena arena;
    char hash[DIGEST_LEN + 1];
    struct source_digest *files; /* sorted by name */
    size_t nfiles;
    struct script_version_consumer *consumers; /* in the scripts' order */
    size_t nconsumers;
};

/** Fills `version`, which must be empty (all zero). */
void script_version_of(const struct script *script,
                       struct script_version *version);
void script_version_free(struct script_version *version);

/** Appends what differs, as "handlers/a.lua changed, handlers/b.lua added;
 * projection 'b' added". All of `to` is new when `from` is NULL. */
void script_version_changes(const struct script_version *from,
                            const struct script_version *to,
                            struct buffer *out);

/** As JSON text, and back. INVALID: it is no such text. */
void script_version_write(const struct script_version *version,
                          struct buffer *out);
enum status script_version_read(struct text json,
                                struct script_version *version,
                                struct diag *diag) MUST_CHECK;

/** The consumer of that name, NULL when there is none. */
const struct script_version_consumer *
script_version_consumer(const struct script_version *version, const char *name);

/** So many characters of a hash are shown to people. */
#define SCRIPT_VERSION_SHOWN 8

#endif
