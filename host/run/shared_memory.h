/*
 * Shared memory -- pages that the supervisor shares with its workers, without
 * a name in any file system. Their size cannot be changed by anybody, so that
 * no worker can take a page away from under the supervisor.
 */
#ifndef HOST_RUN_SHARED_MEMORY_H
#define HOST_RUN_SHARED_MEMORY_H

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct shared_memory {
    int fd; /* CLOEXEC; -1: none */
    void *at;
    size_t size;
};

#define SHARED_MEMORY_NONE ((struct shared_memory){.fd = -1})

/** Makes pages of zeros. `writable`: whoever else gets `fd` may write, too. */
enum status shared_memory_make(const char *name, size_t size, bool writable,
                               struct shared_memory *memory,
                               struct diag *diag) MUST_CHECK;
/** Maps what somebody else has made and takes over `fd`. INVALID when it is
 * no such memory, or has another size. */
enum status shared_memory_open(int fd, size_t size, bool writable,
                               struct shared_memory *memory,
                               struct diag *diag) MUST_CHECK;
/** Pages with these bytes, which nobody may change. */
enum status shared_memory_of(const char *name, struct text bytes,
                             struct shared_memory *memory,
                             struct diag *diag) MUST_CHECK;
/** Appends what shared_memory_of has put there, and takes over `fd`. INVALID
 * when it is no such memory, or larger than `limit`. */
enum status shared_memory_read(int fd, size_t limit, struct buffer *bytes,
                               struct diag *diag) MUST_CHECK;
void shared_memory_close(struct shared_memory *memory);

#endif
