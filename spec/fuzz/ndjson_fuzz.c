/*
 * NDJSON reader under libFuzzer: no input makes it read outside of its lines;
 * what it accepts passes the event store's own checks, or is refused by them
 * for a rule of names alone.
 */
/* The files of the program itself are in no library. */
#include "cli/ndjson.c"
#include "cli/ndjson_event.c"

#include "base/json.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAYLOAD_LIMIT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct append_event *event)
{
    struct diag diag;

    if (json_check(event->payload, NULL, &diag) != STATUS_OK)
        abort();
    if (event->metadata.data != NULL &&
        (json_check(event->metadata, NULL, &diag) != STATUS_OK ||
         json_first(event->metadata).kind != JSON_OBJECT))
        abort();
    if (!text_utf8_valid(event->type) || event->revision < 0 ||
        (event->expect == APPEND_AT && event->expected < 0))
        abort();
    (void)!append_check(event, PAYLOAD_LIMIT, &diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct append_event event;
    struct diag diag;
    struct ndjson *reader;
    int64_t line = 0;
    bool more = true;
    int fd = memfd_create("events", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
        lseek(fd, 0, SEEK_SET) != 0)
        abort();
    reader = ndjson_open(NDJSON_APPEND, fd, "input", PAYLOAD_LIMIT);
    while (ndjson_next(reader, &event, &more, &diag) == STATUS_OK && more) {
        if (ndjson_line(reader) <= line)
            abort();
        line = ndjson_line(reader);
        check_event(&event);
        if (line % 3 == 0)
            ndjson_release(reader);
    }
    ndjson_close(reader);
    close(fd);
    return 0;
}
