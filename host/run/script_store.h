/*
 * Script store -- the bytes of script versions in memory that the supervisor
 * shares with its workers, who can only read it. Versions are added at the end
 * and never changed, so a worker may read one while the next is written.
 */
#ifndef HOST_RUN_SCRIPT_STORE_H
#define HOST_RUN_SCRIPT_STORE_H

#include "base/buffer.h"
#include "base/digest.h"
#include "base/status.h"

#include <stdint.h>

/** Where the bytes of one version lie, and which version it is. */
struct script_place {
    int64_t offset, length;
    char hash[DIGEST_LEN + 1];
};

/* "OFFSET LENGTH HASH" */
#define SCRIPT_PLACE_TEXT_SIZE (2 * 21 + DIGEST_LEN + 1)

struct script_store {
    int write_fd; /* -1: none */
    int read_fd;  /* for workers; CLOEXEC */
    int64_t size;
};

#define SCRIPT_STORE_NONE ((struct script_store){-1, -1, 0})

enum status script_store_open(struct script_store *store,
                              struct diag *diag) MUST_CHECK;
void script_store_close(struct script_store *store);

/** Adds the bytes of a version; place->hash is the caller's. */
enum status script_store_add(struct script_store *store, struct text bytes,
                             struct script_place *place,
                             struct diag *diag) MUST_CHECK;
/** Nobody will read it any more. */
void script_store_drop(struct script_store *store,
                       const struct script_place *place);

/** A worker's side: appends the bytes. INVALID when they are not there. */
enum status script_store_read(int fd, const struct script_place *place,
                              struct buffer *out, struct diag *diag) MUST_CHECK;

/** As text, for an argument or a message, and back. INVALID: it is none. */
void script_place_write(const struct script_place *place,
                        char out[SCRIPT_PLACE_TEXT_SIZE]);
enum status script_place_read(const char *text, struct script_place *place,
                              struct diag *diag) MUST_CHECK;

#endif
