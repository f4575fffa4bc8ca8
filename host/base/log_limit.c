#include "base/log_limit.h"

#include "base/memory.h"

#include <pthread.h>

/* Lines that are alike. */
struct kind {
    uint64_t id;
    int passed;       /* of the first few */
    int64_t told_at;  /* when one passed last */
    int64_t seen_at;  /* when there was one at all */
    int64_t left_out; /* since then */
    bool kept;        /* `newest` is the last of them */
    struct log_line newest;
};

struct log_limit {
    pthread_mutex_t lock; /* of all below */
    struct kind kinds[LOG_LIMIT_KINDS];
    size_t count;
};

struct log_limit *log_limit_new(void)
{
    struct log_limit *limit = mem_alloc(sizeof(*limit));

    pthread_mutex_init(&limit->lock, NULL);
    return limit;
}

void log_line_free(struct log_line *line)
{
    buffer_free(&line->message);
    buffer_free(&line->consumer);
    buffer_free(&line->topic);
    buffer_free(&line->message_id);
    buffer_free(&line->fields);
    *line = (struct log_line){.level = 0};
}

static void drop_kinds(struct log_limit *limit)
{
    for (size_t i = 0; i < limit->count; i++)
        log_line_free(&limit->kinds[i].newest);
    limit->count = 0;
}

void log_limit_forget(struct log_limit *limit)
{
    pthread_mutex_lock(&limit->lock);
    drop_kinds(limit);
    pthread_mutex_unlock(&limit->lock);
}

void log_limit_free(struct log_limit *limit)
{
    if (limit == NULL)
        return;
    drop_kinds(limit);
    pthread_mutex_destroy(&limit->lock);
    mem_free(limit);
}

/* What nobody has seen for a while, and of which all is told. */
static void forget_old(struct log_limit *limit, int64_t now)
{
    size_t left = 0;

    for (size_t i = 0; i < limit->count; i++) {
        struct kind *kind = &limit->kinds[i];

        if (now - kind->seen_at >= LOG_LIMIT_QUIET && kind->left_out == 0)
            continue;
        if (left != i)
            limit->kinds[left] = *kind;
        left++;
    }
    limit->count = left;
}

static struct kind *find(struct log_limit *limit, uint64_t id)
{
    for (size_t i = 0; i < limit->count; i++)
        if (limit->kinds[i].id == id)
            return &limit->kinds[i];
    return NULL;
}

/* When there is no place left, all further kinds share the last one. */
static struct kind *find_or_add(struct log_limit *limit, uint64_t id,
                                int64_t now)
{
    struct kind *kind = find(limit, id);

    if (kind != NULL)
        return kind;
    if (limit->count == LOG_LIMIT_KINDS)
        forget_old(limit, now);
    if (limit->count == LOG_LIMIT_KINDS)
        return &limit->kinds[LOG_LIMIT_KINDS - 1];
    kind = &limit->kinds[limit->count++];
    *kind = (struct kind){.id = id};
    return kind;
}

static bool passes(const struct kind *kind, int64_t now)
{
    return kind->passed < LOG_LIMIT_FIRST ||
           now - kind->told_at >= LOG_LIMIT_PAUSE;
}

bool log_limit_pass(struct log_limit *limit, uint64_t id, int64_t now,
                    int64_t *left_out)
{
    struct kind *kind;
    bool pass;

    pthread_mutex_lock(&limit->lock);
    kind = find_or_add(limit, id, now);
    if (now - kind->seen_at >= LOG_LIMIT_QUIET && kind->left_out == 0)
        kind->passed = 0;
    kind->seen_at = now;
    pass = passes(kind, now);
    *left_out = kind->left_out;
    if (pass) {
        kind->passed += kind->passed < LOG_LIMIT_FIRST;
        kind->told_at = now;
        kind->left_out = 0;
        log_line_free(&kind->newest);
        kind->kept = false;
    } else {
        kind->left_out++;
    }
    pthread_mutex_unlock(&limit->lock);
    return pass;
}

void log_limit_keep(struct log_limit *limit, uint64_t id, struct log_line *line)
{
    struct kind *kind;

    pthread_mutex_lock(&limit->lock);
    kind = find(limit, id);
    if (kind == NULL && limit->count == LOG_LIMIT_KINDS)
        kind = &limit->kinds[LOG_LIMIT_KINDS - 1];
    /* another thread may have told them meanwhile */
    if (kind != NULL && kind->left_out > 0) {
        log_line_free(&kind->newest);
        kind->newest = *line;
        kind->kept = true;
    } else {
        log_line_free(line);
    }
    pthread_mutex_unlock(&limit->lock);
    *line = (struct log_line){.level = 0};
}

bool log_limit_next(struct log_limit *limit, int64_t now, bool all,
                    struct log_line *line, int64_t *left_out)
{
    bool found = false;

    pthread_mutex_lock(&limit->lock);
    for (size_t i = 0; i < limit->count && !found; i++) {
        struct kind *kind = &limit->kinds[i];

        if (!kind->kept || (!all && !passes(kind, now)))
            continue;
        found = true;
        *line = kind->newest;
        *left_out = kind->left_out - 1;
        kind->newest = (struct log_line){.level = 0};
        kind->kept = false;
        kind->left_out = 0;
        kind->told_at = now;
    }
    pthread_mutex_unlock(&limit->lock);
    return found;
}
