#include "cli/ndjson.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define BLOCK_SIZE ((size_t)256 * 1024)
#define LINE_EXTRA INT64_C(65536) /* bytes of a line beside its payload */

/* Lines lie whole within one block; blocks with lines that are still in use
 * are kept until the release. */
struct block {
    struct block *older;
    size_t size;
    size_t filled;
    char data[];
};

struct ndjson {
    enum ndjson_kind kind;
    int fd;
    const char *name;
    size_t line_limit;
    struct block *block;
    size_t at;      /* start of the line that is being looked for */
    size_t scanned; /* bytes behind `at` known to hold no line end */
    bool ended;     /* the descriptor has no more */
    bool pinned;    /* events point into `block` */
    int64_t line;
    size_t held;
    struct arena arena; /* strings that had escapes */
    struct buffer scratch;
};

static struct block *new_block(size_t size)
{
    struct block *block = mem_grow(NULL, sizeof(*block) + size, 1);

    *block = (struct block){.size = size};
    return block;
}

struct ndjson *ndjson_open(enum ndjson_kind kind, int fd, const char *name,
                           int64_t payload_limit)
{
    struct ndjson *reader = mem_alloc(sizeof(*reader));

    assert(payload_limit >= 0 && payload_limit < INT64_MAX - LINE_EXTRA);
    reader->kind = kind;
    reader->fd = fd;
    reader->name = name;
    reader->line_limit = (size_t)(payload_limit + LINE_EXTRA);
    reader->block = new_block(BLOCK_SIZE);
    return reader;
}

static void free_blocks(struct block *block)
{
    while (block != NULL) {
        struct block *older = block->older;

        mem_free(block);
        block = older;
    }
}

void ndjson_close(struct ndjson *reader)
{
    if (reader == NULL)
        return;
    free_blocks(reader->block);
    arena_free(&reader->arena);
    buffer_free(&reader->scratch);
    mem_free(reader);
}

void ndjson_release(struct ndjson *reader)
{
    free_blocks(reader->block->older);
    reader->block->older = NULL;
    reader->pinned = false;
    reader->held = 0;
    arena_reset(&reader->arena);
}

int64_t ndjson_line(const struct ndjson *reader)
{
    return reader->line;
}

size_t ndjson_held(const struct ndjson *reader)
{
    return reader->held;
}

static enum status line_error(const struct ndjson *reader, struct diag *diag)
{
    return diag_wrap(diag, "%s:%" PRId64, reader->name, reader->line);
}

/* Makes room behind the unfinished line, which moves to the start of a block:
 * the same one when no event points into it. */
static void make_room(struct ndjson *reader)
{
    struct block *old = reader->block;
    size_t partial = old->filled - reader->at;
    struct block *block;
    size_t size = BLOCK_SIZE;

    if (old->filled < old->size)
        return;
    while (size < partial * 2)
        size *= 2;
    if (!reader->pinned && partial < old->size / 2) {
        memmove(old->data, old->data + reader->at, partial);
        old->filled = partial;
        reader->at = 0;
        return;
    }
    block = new_block(size);
    memcpy(block->data, old->data + reader->at, partial);
    block->filled = partial;
    if (reader->pinned) {
        block->older = old;
    } else {
        block->older = old->older;
        mem_free(old);
    }
    reader->block = block;
    reader->at = 0;
    reader->pinned = false;
}

static enum status read_more(struct ndjson *reader, struct diag *diag)
{
    struct block *block;
    ssize_t got;

    make_room(reader);
    block = reader->block;
    got = read(reader->fd, block->data + block->filled,
               block->size - block->filled);
    if (got < 0 && errno == EINTR)
        return diag_set(diag, STATUS_STOPPED, "stopped by a signal");
    if (got < 0)
        return diag_set(diag, STATUS_FAILED, "cannot read %s: %s", reader->name,
                        strerror(errno));
    block->filled += (size_t)got;
    reader->ended = got == 0;
    return STATUS_OK;
}

static enum status too_long(struct ndjson *reader, struct diag *diag)
{
    reader->line++;
    diag_set(diag, STATUS_INVALID,
             "the line is longer than %zu bytes (limits.payload and 64 KiB)",
             reader->line_limit);
    return line_error(reader, diag);
}

/* The next line without its end; *more is false when there is none. */
static enum status next_line(struct ndjson *reader, struct text *line,
                             bool *more, struct diag *diag)
{
    for (;;) {
        const char *start = reader->block->data + reader->at;
        size_t available = reader->block->filled - reader->at;
        const char *end = memchr(start + reader->scanned, '\n',
                                 available - reader->scanned);
        size_t len = end != NULL ? (size_t)(end - start) : available;
        enum status status;

        if (len > reader->line_limit)
            return too_long(reader, diag);
        if (end == NULL && !reader->ended) {
            reader->scanned = available;
            status = read_more(reader, diag);
            if (status != STATUS_OK)
                return status;
            continue;
        }
        *more = end != NULL || len > 0;
        if (*more)
            reader->line++;
        *line = (struct text){start, len};
        reader->at += len + (end != NULL ? 1 : 0);
        reader->scanned = 0;
        return STATUS_OK;
    }
}

static bool is_blank(struct text line)
{
    size_t i = 0;

    while (i < line.len && (line.data[i] == ' ' || line.data[i] == '\t' ||
                            line.data[i] == '\r'))
        i++;
    return i == line.len;
}

enum status ndjson_next(struct ndjson *reader, struct append_event *event,
                        bool *more, struct diag *diag)
{
    struct text line = TEXT_NONE;
    enum status status;

    *more = false;
    do {
        status = next_line(reader, &line, more, diag);
        if (status != STATUS_OK || !*more)
            return status;
    } while (is_blank(line));

    status = ndjson_event_read(reader->kind, line, &reader->arena,
                               &reader->scratch, event, diag);
    if (status != STATUS_OK)
        return line_error(reader, diag);
    reader->pinned = true;
    reader->held += line.len;
    return STATUS_OK;
}
