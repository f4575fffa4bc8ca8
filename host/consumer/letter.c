#include "consumer/letter.h"

#include "consumer/message_copy.h"
#include "consumer/undelivered.h"

#define FILTER_PARAMS 5

enum {
    COLUMN_ID,
    COLUMN_CONSUMER_ID,
    COLUMN_CONSUMER_TYPE,
    COLUMN_CONSUMER_NAME,
    COLUMN_SOURCE,
    COLUMN_POSITION,
    COLUMN_PARTITION,
    COLUMN_KEY,
    COLUMN_STATUS,
    COLUMN_FAILURES,
    COLUMN_NEXT_RETRY_AT,
    COLUMN_REASON,
    COLUMN_RECORDED_AT,
    COLUMN_UNRESOLVED,
    COLUMN_COPY,
};

struct reading {
    const struct letter_filter *filter;
    enum letter_detail detail;
    size_t limit;
    struct arena *arena;
    struct letters *letters;
    struct arena scratch;   /* of the row under the cursor */
    struct message message; /* of its copy; position 0: none */
    struct letter letter;   /* the newest, whose rows may go on */
    bool matched;           /* some row of it is wanted */
};

/* Room for one more in an array of the arena that doubles when it is full. */
static void *room(struct arena *arena, void *old, size_t count, size_t size)
{
    void *bigger;

    if (count > 0 && (count & (count - 1)) != 0)
        return old;
    bigger = arena_alloc(arena, (count == 0 ? 1 : 2 * count) * size);
    if (count > 0)
        memcpy(bigger, old, count * size);
    return bigger;
}

static bool is_word(const char *word, enum undelivered_status status)
{
    return strcmp(word, undelivered_status_word(status)) == 0;
}

bool letter_filter_narrows(const struct letter_filter *f)
{
    return f->id != NULL || f->position != 0 || f->type != NULL ||
           f->key != NULL || f->error != NULL || f->status != NULL ||
           f->recorded_before != 0 || f->recorded_after != 0;
}

bool letter_failed(const struct letter *letter)
{
    if (is_word(letter->status, UNDELIVERED_WAITING))
        return false;
    return letter->reason != NULL ||
           !is_word(letter->status, UNDELIVERED_DEAD_LETTER_KEY);
}

size_t letter_ids(const struct letter *letter, struct text *ids, size_t count)
{
    for (size_t i = 0; i < letter->nrows; i++)
        ids[count++] = text_of(letter->rows[i].id);
    return count;
}

/* --- one row -------------------------------------------------------------- */

/* A copy that cannot be read is shown as none. */
static void take_message(struct reading *r, struct db_rows *rows)
{
    struct diag ignored;

    r->message = (struct message){.position = 0};
    if (db_is_null(rows, COLUMN_COPY))
        return;
    if ((r->detail == LETTER_WHOLE ? message_copy_read
                                   : message_copy_read_head)(
            db_get_text(rows, COLUMN_COPY), &r->scratch, &r->message,
            &ignored) != STATUS_OK)
        r->message = (struct message){.position = 0};
    else
        r->message.position = db_get_int64(rows, COLUMN_POSITION);
}

static bool same_id(const struct reading *r, const char *row_id)
{
    char id[UUID_TEXT_LEN + 1];

    if (strcmp(r->filter->id, row_id) == 0)
        return true;
    uuid_format(&r->message.id, id);
    return r->message.position > 0 && strcmp(r->filter->id, id) == 0;
}

/* A text inside of another one, byte for byte. */
static bool contains(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

static bool is_wanted(const struct reading *r, const struct letter *l,
                      const char *row_id)
{
    const struct letter_filter *f = r->filter;

    if (f->id != NULL && !same_id(r, row_id))
        return false;
    if (f->position != 0 && f->position != l->position)
        return false;
    if (f->type != NULL && !text_equal(r->message.type, text_of(f->type)))
        return false;
    if (f->key != NULL && !text_equal(l->key, text_of(f->key)))
        return false;
    if (f->error != NULL && !contains(l->reason, f->error))
        return false;
    if (f->recorded_before != 0 && l->recorded_at >= f->recorded_before)
        return false;
    if (f->recorded_after != 0 && l->recorded_at <= f->recorded_after)
        return false;
    return f->id != NULL || f->position != 0 || letter_failed(l) ||
           (f->status != NULL &&
            strcmp(f->status, undelivered_status_word(UNDELIVERED_WAITING)) ==
                0);
}

static int64_t time_or_none(struct db_rows *rows, size_t column)
{
    return db_is_null(rows, column) ? 0 : db_get_timestamp(rows, column);
}

/* The row as a letter of its own; its texts live in the scratch arena. */
static struct letter take_row(struct reading *r, struct db_rows *rows)
{
    struct arena *arena = &r->scratch;

    return (struct letter){
        .consumer_id = arena_string(arena,
                                    db_get_text(rows, COLUMN_CONSUMER_ID)),
        .consumer_type = arena_string(arena,
                                      db_get_text(rows, COLUMN_CONSUMER_TYPE)),
        .consumer = arena_string(arena,
                                 db_get_text(rows, COLUMN_CONSUMER_NAME)),
        .source = arena_string(arena, db_get_text(rows, COLUMN_SOURCE)),
        .position = db_get_int64(rows, COLUMN_POSITION),
        .key = arena_copy(arena, db_get_text(rows, COLUMN_KEY)),
        .unresolved = db_get_bool(rows, COLUMN_UNRESOLVED),
        .status = arena_string(arena, db_get_text(rows, COLUMN_STATUS)),
        .failures = db_get_int64(rows, COLUMN_FAILURES),
        .next_retry_at = time_or_none(rows, COLUMN_NEXT_RETRY_AT),
        .recorded_at = db_get_timestamp(rows, COLUMN_RECORDED_AT),
        .reason = db_is_null(rows, COLUMN_REASON)
                      ? NULL
                      : arena_string(arena, db_get_text(rows, COLUMN_REASON)),
    };
}

/* --- letters -------------------------------------------------------------- */

static struct message keep_message(const struct message *m, struct arena *arena)
{
    struct message kept = *m;

    kept.key = arena_copy(arena, m->key);
    kept.type = arena_copy(arena, m->type);
    kept.payload = arena_copy(arena, m->payload);
    kept.metadata = arena_copy(arena, m->metadata);
    kept.aggregate_type = arena_copy(arena, m->aggregate_type);
    kept.aggregate_id = arena_copy(arena, m->aggregate_id);
    return kept;
}

static const char *keep_string(const char *string, struct arena *arena)
{
    return string == NULL ? NULL : arena_string(arena, text_of(string));
}

/* Takes what the row under the cursor tells out of the scratch arena. */
static struct letter keep_letter(const struct reading *r,
                                 const struct letter *row)
{
    struct arena *arena = r->arena;
    struct letter kept = *row;

    kept.consumer_id = keep_string(row->consumer_id, arena);
    kept.consumer_type = keep_string(row->consumer_type, arena);
    kept.consumer = keep_string(row->consumer, arena);
    kept.source = keep_string(row->source, arena);
    kept.key = arena_copy(arena, row->key);
    kept.status = keep_string(row->status, arena);
    kept.reason = keep_string(row->reason, arena);
    kept.type = arena_string(arena, r->message.type.data != NULL
                                        ? r->message.type
                                        : TEXT_LITERAL(""));
    if (r->detail == LETTER_WHOLE)
        kept.message = keep_message(&r->message, arena);
    return kept;
}

static void letter_done(struct reading *r)
{
    struct letters *list = r->letters;

    if (r->letter.nrows > 0 && r->matched) {
        list->total++;
        if (list->count < r->limit) {
            list->items = room(r->arena, list->items, list->count,
                               sizeof(*list->items));
            list->items[list->count++] = r->letter;
        }
    }
    r->letter = (struct letter){.nrows = 0};
    r->matched = false;
}

static bool goes_on(const struct letter *letter, const struct letter *row)
{
    return letter->nrows > 0 && letter->unresolved && row->unresolved &&
           letter->position == row->position &&
           strcmp(letter->consumer_id, row->consumer_id) == 0 &&
           strcmp(letter->source, row->source) == 0;
}

static void on_row(struct reading *r, struct db_rows *rows)
{
    struct letter *letter = &r->letter;
    struct letter row;
    const char *id;
    bool wanted;

    arena_reset(&r->scratch);
    take_message(r, rows);
    row = take_row(r, rows);
    id = arena_string(&r->scratch, db_get_text(rows, COLUMN_ID));
    wanted = is_wanted(r, &row, id);
    if (!goes_on(letter, &row)) {
        letter_done(r);
        if (!wanted && !row.unresolved)
            return; /* no later row can make it wanted */
        *letter = keep_letter(r, &row);
    }
    r->matched = r->matched || wanted;
    letter->rows = room(r->arena, letter->rows, letter->nrows,
                        sizeof(*letter->rows));
    letter->rows[letter->nrows++] = (struct letter_row){
        .id = keep_string(id, r->arena),
        .partition = (int)db_get_int64(rows, COLUMN_PARTITION),
    };
}

/* For both statements. A list must not read what the messages carry. */
static int64_t copies_wanted(const struct letter_filter *filter,
                             enum letter_detail detail)
{
    if (detail == LETTER_WHOLE)
        return 2;
    return detail == LETTER_TYPE || filter->type != NULL || filter->id != NULL;
}

static enum status read_rows(struct db *db, const struct db_sql *statement,
                             const struct db_value *params, size_t nparams,
                             struct reading *r, struct diag *diag)
{
    struct db_sql sql = *statement;
    struct db_rows *rows;
    bool more = false;
    enum status status;

    *r->letters = (struct letters){.items = NULL};
    sql.large = true; /* each row may have the copy of a payload */
    status = db_query(db, &sql, params, nparams, &rows, diag);
    if (status != STATUS_OK)
        return status;
    while ((status = db_next(rows, &more, diag)) == STATUS_OK && more)
        on_row(r, rows);
    db_rows_close(rows);
    letter_done(r);
    arena_free(&r->scratch);
    return status;
}

/* What both statements begin with. */
static void filter_params(const struct letter_filter *filter,
                          enum letter_detail detail, const char *consumer_id,
                          struct db_value params[FILTER_PARAMS])
{
    params[0] = db_string(consumer_id);
    params[1] = db_string(filter->status);
    params[2] = db_integer(copies_wanted(filter, detail));
    params[3] = filter->position != 0 ? db_integer(filter->position)
                                      : db_null();
    params[4] = db_boolean(filter->id != NULL || filter->position != 0 ||
                           filter->status != NULL);
}

enum status letters_read(struct db *db, const struct catalog *catalog,
                         const struct letter_filter *filter, size_t limit,
                         enum letter_detail detail, struct arena *arena,
                         struct letters *letters, struct diag *diag)
{
    struct db_value params[FILTER_PARAMS];
    struct reading r = {
        .filter = filter,
        .detail = detail,
        .limit = limit,
        .arena = arena,
        .letters = letters,
        .scratch = ARENA_EMPTY,
    };

    filter_params(filter, detail, filter->consumer_id, params);
    return read_rows(db, catalog_sql(catalog, SQL_LETTERS_READ), params,
                     FILTER_PARAMS, &r, diag);
}

/* --- stretches ------------------------------------------------------------ */

static enum status take_end(void *arg, struct db_rows *row, struct diag *diag)
{
    struct letter_span *span = arg;

    (void)diag;
    span->through = db_get_int64(row, 0);
    return STATUS_OK;
}

enum status letter_span_cut(struct db *db, const struct catalog *catalog,
                            struct letter_span *span, const char *word,
                            int64_t rows, struct diag *diag)
{
    const struct db_value params[] = {
        db_string(span->consumer_id), db_string(span->source),
        db_integer(span->after),      db_integer(span->through),
        db_integer(rows - 1),         db_string(word),
    };

    return db_rows_each(db, catalog_sql(catalog, SQL_LETTERS_PAGE_END), params,
                        6, take_end, span, diag);
}

enum status letter_span_read(struct db *db, const struct catalog *catalog,
                             const struct letter_filter *filter,
                             const struct letter_span *span,
                             enum letter_detail detail, struct arena *arena,
                             struct letters *letters, struct diag *diag)
{
    struct db_value params[FILTER_PARAMS + 3];
    struct reading r = {
        .filter = filter,
        .detail = detail,
        .limit = SIZE_MAX,
        .arena = arena,
        .letters = letters,
        .scratch = ARENA_EMPTY,
    };

    filter_params(filter, detail, span->consumer_id, params);
    params[FILTER_PARAMS] = db_string(span->source);
    params[FILTER_PARAMS + 1] = db_integer(span->after);
    params[FILTER_PARAMS + 2] = db_integer(span->through);
    return read_rows(db, catalog_sql(catalog, SQL_LETTERS_PAGE), params,
                     FILTER_PARAMS + 3, &r, diag);
}
