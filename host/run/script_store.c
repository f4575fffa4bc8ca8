#include "run/script_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* No set of scripts is larger together. */
#define BYTES_MAX (INT64_C(256) << 20)

enum status script_store_open(struct script_store *store, struct diag *diag)
{
    char path[64];

    *store = SCRIPT_STORE_NONE;
    store->write_fd = memfd_create("moontide scripts", MFD_CLOEXEC);
    if (store->write_fd >= 0) {
        /* opened anew, so that nobody who gets it can write */
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", store->write_fd);
        store->read_fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (store->read_fd >= 0)
        return STATUS_OK;
    diag_set(diag, STATUS_FAILED, "cannot make memory for the scripts: %s",
             strerror(errno));
    script_store_close(store);
    return STATUS_FAILED;
}

void script_store_close(struct script_store *store)
{
    if (store->write_fd >= 0)
        close(store->write_fd);
    if (store->read_fd >= 0)
        close(store->read_fd);
    *store = SCRIPT_STORE_NONE;
}

enum status script_store_add(struct script_store *store, struct text bytes,
                             struct script_place *place, struct diag *diag)
{
    size_t done = 0;

    while (done < bytes.len) {
        ssize_t n = pwrite(store->write_fd, bytes.data + done, bytes.len - done,
                           store->size + (int64_t)done);

        if (n < 0 && errno != EINTR)
            return diag_set(diag, STATUS_FAILED,
                            "no memory for the scripts: %s", strerror(errno));
        if (n > 0)
            done += (size_t)n;
    }
    place->offset = store->size;
    place->length = (int64_t)bytes.len;
    store->size += (int64_t)bytes.len;
    return STATUS_OK;
}

void script_store_drop(struct script_store *store,
                       const struct script_place *place)
{
    /* what cannot be given back is a little memory */
    if (place->length > 0)
        (void)fallocate(store->write_fd,
                        FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        place->offset, place->length);
}

enum status script_store_read(int fd, const struct script_place *place,
                              struct buffer *out, struct diag *diag)
{
    int64_t done = 0;

    buffer_reserve(out, (size_t)place->length);
    while (done < place->length) {
        ssize_t n = pread(fd, out->data + out->len,
                          (size_t)(place->length - done), place->offset + done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return diag_set(diag, STATUS_INVALID,
                            "the bytes of the scripts cannot be read: %s",
                            n < 0 ? strerror(errno) : "they end too early");
        done += n;
        out->len += (size_t)n;
    }
    out->data[out->len] = '\0';
    return STATUS_OK;
}

void script_place_write(const struct script_place *place,
                        char out[SCRIPT_PLACE_TEXT_SIZE])
{
    (void)snprintf(out, SCRIPT_PLACE_TEXT_SIZE, "%" PRId64 " %" PRId64 " %s",
                   place->offset, place->length, place->hash);
}

enum status script_place_read(const char *text, struct script_place *place,
                              struct diag *diag)
{
    char *end = NULL;
    bool good;

    *place = (struct script_place){.offset = strtoll(text, &end, 10)};
    good = *end == ' ' && place->offset >= 0;
    if (good) {
        place->length = strtoll(end + 1, &end, 10);
        good = *end == ' ' && place->length >= 0 &&
               place->length <= BYTES_MAX && strlen(end + 1) == DIGEST_LEN;
    }
    if (!good)
        return diag_set(diag, STATUS_INVALID,
                        "'%.80s' does not say where scripts lie", text);
    memcpy(place->hash, end + 1, DIGEST_LEN + 1);
    return STATUS_OK;
}
