#include "run/shared_memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static enum status map(struct shared_memory *memory, bool writable,
                       struct diag *diag)
{
    memory->at = mmap(NULL, memory->size,
                      PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED,
                      memory->fd, 0);
    if (memory->at != MAP_FAILED)
        return STATUS_OK;
    memory->at = NULL;
    return diag_set(diag, STATUS_FAILED, "cannot map shared memory: %s",
                    strerror(errno));
}

enum status shared_memory_make(const char *name, size_t size, bool writable,
                               struct shared_memory *memory, struct diag *diag)
{
    int seals = SIZE_SEALS | F_SEAL_SEAL;
    enum status status = STATUS_OK;

    *memory = (struct shared_memory){.size = size};
    memory->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->fd < 0 || ftruncate(memory->fd, (off_t)size) != 0)
        status = diag_set(diag, STATUS_FAILED, "cannot make shared memory: %s",
                          strerror(errno));
    if (status == STATUS_OK)
        status = map(memory, true, diag);
    /* our own mapping stays writable */
    if (!writable)
        seals |= F_SEAL_FUTURE_WRITE;
    if (status == STATUS_OK && fcntl(memory->fd, F_ADD_SEALS, seals) != 0)
        status = diag_set(diag, STATUS_FAILED, "cannot seal shared memory: %s",
                          strerror(errno));
    if (status != STATUS_OK)
        shared_memory_close(memory);
    return status;
}

enum status shared_memory_open(int fd, size_t size, bool writable,
                               struct shared_memory *memory, struct diag *diag)
{
    struct stat about;
    int seals = fcntl(fd, F_GET_SEALS);

    *memory = SHARED_MEMORY_NONE;
    if (seals < 0 || (seals & SIZE_SEALS) != SIZE_SEALS ||
        fstat(fd, &about) != 0 || about.st_size != (off_t)size)
        return diag_set(diag, STATUS_INVALID,
                        "descriptor %d is no shared memory of %zu bytes", fd,
                        size);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    *memory = (struct shared_memory){.fd = fd, .size = size};
    return map(memory, writable, diag);
}

enum status shared_memory_of(const char *name, struct text bytes,
                             struct shared_memory *memory, struct diag *diag)
{
    enum status status = shared_memory_make(name, bytes.len, false, memory,
                                            diag);

    if (status != STATUS_OK)
        return status;
    assert(memory->at != NULL);
    memcpy(memory->at, bytes.data, bytes.len);
    return STATUS_OK;
}

enum status shared_memory_read(int fd, size_t limit, struct buffer *bytes,
                               struct diag *diag)
{
    struct shared_memory memory;
    struct stat about;
    enum status status;

    if (fstat(fd, &about) != 0 || about.st_size < 0 ||
        (size_t)about.st_size > limit)
        return diag_set(diag, STATUS_INVALID,
                        "descriptor %d is no shared memory of at most %zu "
                        "bytes",
                        fd, limit);
    status = shared_memory_open(fd, (size_t)about.st_size, false, &memory,
                                diag);
    if (status != STATUS_OK)
        return status;
    assert(memory.at != NULL);
    buffer_append(bytes, memory.at, memory.size);
    shared_memory_close(&memory);
    return STATUS_OK;
}

void shared_memory_close(struct shared_memory *memory)
{
    if (memory->at != NULL)
        munmap(memory->at, memory->size);
    if (memory->fd >= 0)
        close(memory->fd);
    *memory = SHARED_MEMORY_NONE;
}
