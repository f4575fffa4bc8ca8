#include "topic/event_page.h"

#include "base/hash.h"
#include "base/memory.h"
#include "topic/high_water_mark.h"
#include "topic/topic_parts.h"

#include <assert.h>

/* Positions that one statement walks at most when it looks for some events
 * only: a long stretch of others never makes one long statement. */
#define SCAN_WINDOW INT64_C(20000)

#define FIRST_ROWS 64

#define PAGE_PARAMS  8
#define COUNT_PARAMS 7

enum page_column {
    PAGE_POSITION,
    PAGE_ID,
    PAGE_AGGREGATE_TYPE,
    PAGE_KEY,
    PAGE_SEQUENCE,
    PAGE_TYPE,
    PAGE_REVISION,
    PAGE_PAYLOAD,
    PAGE_METADATA,
    PAGE_OCCURRED_AT,
    PAGE_PARTITION,
    PAGE_START,             /* of a topic that deletes */
    PAGE_DEPTH = PAGE_START /* of a cascade, in a table that topics share */
};

static bool filters(const struct event_filter *filter)
{
    return filter->ntypes > 0 || filter->naggregates > 0 ||
           filter->npartitions > 0 || filter->key.data != NULL;
}

/* Which tables can hold what is wanted. */
static void choose_tables(const struct topic *topic,
                          const struct event_filter *filter, bool *wanted)
{
    for (size_t t = 0; t < topic->ntables; t++)
        wanted[t] = filter->naggregates == 0;
    for (size_t i = 0; i < filter->naggregates; i++)
        wanted[topic_table_of(topic, filter->aggregates[i])] = true;
}

#define PAGE_END "\n ORDER BY global_position\n LIMIT ?3"

static size_t count_wanted(const struct topic *topic, const bool *wanted)
{
    size_t count = 0;

    for (size_t t = 0; t < topic->ntables; t++)
        count += wanted[t];
    return count;
}

/* One branch per table, in position order over all of them: each branch walks
 * its index and the database merges. One that would take in the branches whole
 * and sort them gets branches that are cut to the page. */
static enum status build_page_sql(const struct topic *topic, bool can_merge,
                                  struct topic_page_sql *page,
                                  struct diag *diag)
{
    enum sql_statement statement = page->by_key ? topic->kind->page_key
                                                : topic->kind->page;
    bool cut = !can_merge && count_wanted(topic, page->wanted) > 1;
    bool first = true;

    for (size_t t = 0; t < topic->ntables; t++) {
        enum status status;

        if (!page->wanted[t])
            continue;
        if (!first)
            buffer_append_string(&page->text, "\nUNION ALL\n");
        first = false;
        buffer_append_string(&page->text, cut ? "(" : "");
        status = topic_fill(topic, t, statement, &page->text, diag);
        if (status != STATUS_OK)
            return status;
        buffer_append_string(&page->text, cut ? PAGE_END ")" : "");
    }
    buffer_append_string(&page->text, PAGE_END "\n");
    page->sql = db_sql_make(buffer_text(&page->text), DB_HOST);
    page->sql.large = true;
    return STATUS_OK;
}

static enum status find_page_sql(struct topic *topic, struct db *db,
                                 const struct event_filter *filter,
                                 const struct db_sql **sql, struct diag *diag)
{
    size_t size = topic->ntables * sizeof(bool);
    bool by_key = filter->key.data != NULL;
    bool *wanted = mem_alloc(size);
    struct topic_page_sql *page;
    enum status status;

    choose_tables(topic, filter, wanted);
    for (page = topic->pages; page != NULL; page = page->next) {
        if (page->by_key == by_key && memcmp(page->wanted, wanted, size) == 0) {
            mem_free(wanted);
            *sql = &page->sql;
            return STATUS_OK;
        }
    }
    page = mem_alloc(sizeof(*page));
    page->by_key = by_key;
    page->wanted = wanted;
    page->next = topic->pages;
    status = build_page_sql(topic, (db_abilities(db) & DB_CAN_MERGE) != 0, page,
                            diag);
    if (status != STATUS_OK) {
        buffer_free(&page->text);
        mem_free(page->wanted);
        mem_free(page);
        return status;
    }
    topic->pages = page;
    *sql = &page->sql;
    return STATUS_OK;
}

static struct db_value texts_or_null(const struct text *items, size_t count)
{
    return count > 0 ? db_texts(items, count) : db_null();
}

static void fill_params(const struct topic *topic,
                        const struct event_filter *filter, int64_t after,
                        int64_t upto, int64_t limit, struct db_value *params)
{
    params[0] = db_integer(after);
    params[1] = db_integer(upto);
    params[2] = db_integer(limit);
    params[3] = texts_or_null(filter->types, filter->ntypes);
    params[4] = topic->kind->shared
                    ? db_string(topic->label)
                    : texts_or_null(filter->aggregates, filter->naggregates);
    params[5] = filter->npartitions > 0
                    ? db_integers(filter->partitions, filter->npartitions)
                    : db_null();
    params[6] = db_text_value(filter->key);
}

/* Puts `text` at *at and moves it on; one that is NULL stays so. */
static struct text put(char **at, struct text text)
{
    struct text copy = {*at, text.len};

    if (text.data == NULL)
        return TEXT_NONE;
    memcpy(*at, text.data, text.len);
    *at += text.len;
    return copy;
}

static struct text text_or_none(struct db_rows *rows, enum page_column column)
{
    return db_is_null(rows, column) ? TEXT_NONE : db_get_text(rows, column);
}

/* Only in the event store is there an aggregate, whose id is the key. */
void topic_message_copy(struct arena *arena, struct db_rows *rows,
                        struct message *message)
{
    struct text aggregate_type = text_or_none(rows, PAGE_AGGREGATE_TYPE);
    struct text key = text_or_none(rows, PAGE_KEY);
    struct text type = db_get_text(rows, PAGE_TYPE);
    struct text payload = db_get_text(rows, PAGE_PAYLOAD);
    struct text metadata = text_or_none(rows, PAGE_METADATA);
    char *at = arena_alloc(arena, aggregate_type.len + key.len + type.len +
                                      payload.len + metadata.len + 1);

    *message = (struct message){
        .position = db_get_int64(rows, PAGE_POSITION),
        .id = db_get_uuid(rows, PAGE_ID),
        .partition = (int)db_get_int64(rows, PAGE_PARTITION),
        .revision = (int)db_get_int64(rows, PAGE_REVISION),
        .occurred_at = db_get_timestamp(rows, PAGE_OCCURRED_AT),
        .sequence = db_is_null(rows, PAGE_SEQUENCE)
                        ? MESSAGE_NO_SEQUENCE
                        : db_get_int64(rows, PAGE_SEQUENCE),
    };
    message->aggregate_type = put(&at, aggregate_type);
    message->key = put(&at, key);
    if (aggregate_type.data != NULL)
        message->aggregate_id = message->key;
    message->type = put(&at, type);
    message->payload = put(&at, payload);
    message->metadata = put(&at, metadata);
}

static struct message *next_message(struct event_page *page)
{
    if (page->count == page->capacity) {
        page->capacity = page->capacity > 0 ? page->capacity * 2 : 64;
        page->messages = mem_grow(page->messages, page->capacity,
                                  sizeof(*page->messages));
    }
    return &page->messages[page->count];
}

/* What is wrong with a row shows when the next one is asked for. */
static enum status next_row(struct db_rows *rows, const struct event_page *page,
                            bool *more, struct diag *diag)
{
    enum status status = db_next(rows, more, diag);

    if (status == STATUS_PERMANENT && page->count > 0)
        return diag_wrap(diag, "the event at position %lld cannot be read",
                         (long long)page->messages[page->count - 1].position);
    return status;
}

/* *cut is set when rows may be left. */
static enum status read_rows(const struct topic *topic, struct db_rows *rows,
                             const struct event_range *range, size_t limit,
                             struct event_page *page, bool *cut,
                             struct diag *diag)
{
    size_t bytes = 0;

    for (;;) {
        bool more;
        size_t size;
        enum status status = next_row(rows, page, &more, diag);

        if (status != STATUS_OK || !more)
            return status;
        size = db_get_text(rows, PAGE_PAYLOAD).len;
        if (page->count > 0 && size > range->byte_limit - bytes) {
            *cut = true;
            return STATUS_OK;
        }
        bytes = size < range->byte_limit - bytes ? bytes + size
                                                 : range->byte_limit;
        topic_message_copy(&page->arena, rows, next_message(page));
        if (topic->kind->shared)
            page->messages[page->count].cascade_depth = (int)db_get_int64(
                rows, PAGE_DEPTH);
        if (topic->kind->deletes)
            page->start = db_get_int64(rows, PAGE_START);
        page->count++;
        if (page->count == limit) {
            *cut = true;
            return next_row(rows, page, &more, diag);
        }
    }
}

/* The statement and parameters that read a range; *upto is how far it goes. */
struct page_query {
    const struct db_sql *sql;
    struct db_value params[PAGE_PARAMS];
    size_t nparams;
    int64_t upto;
};

/* After a page whose payloads were too large together, fewer messages are asked
 * for, and more again when they fit. Where all that was asked for is sent, some
 * are the beginning: nothing is known of their size. */
static size_t rows_wanted(struct db *db, const struct event_page *page,
                          const struct event_range *range)
{
    size_t fits = page->fits;

    if (fits == 0 && (db_abilities(db) & DB_SENDS_ALL) != 0)
        fits = FIRST_ROWS;
    return fits > 0 && fits < range->limit ? fits : range->limit;
}

/* Only a page that was full tells that more may fit. */
static void note_fit(const struct db *db, struct event_page *page, size_t limit,
                     bool cut)
{
    bool watched = page->fits > 0 || (db_abilities(db) & DB_SENDS_ALL) != 0;

    if (cut && page->count < limit)
        page->fits = page->count;
    else if (cut && watched && page->fits < 2 * limit)
        page->fits = 2 * limit;
}

static enum status prepare_query(struct topic *topic, struct db *db,
                                 const struct event_filter *filter,
                                 const struct event_range *range, size_t limit,
                                 struct page_query *query, struct diag *diag)
{
    enum status status = find_page_sql(topic, db, filter, &query->sql, diag);

    query->nparams = COUNT_PARAMS - 1;
    query->upto = range->upto;
    if (filters(filter) && query->upto - range->after > SCAN_WINDOW)
        query->upto = range->after + SCAN_WINDOW;
    if (status != STATUS_OK)
        return status;
    fill_params(topic, filter, range->after, query->upto, (int64_t)limit,
                query->params);
    if (filter->key.data != NULL) {
        query->params[7] = db_integer(
            hash_partition(filter->key, topic->partitions));
        query->nparams = PAGE_PARAMS;
    }
    return STATUS_OK;
}

/* Whether what was announced, or fetched, is of the partitions that are wanted
 * by this filter. */
static bool same_partitions(const struct event_page *page,
                            const struct event_filter *filter)
{
    return page->nahead_partitions == filter->npartitions &&
           (filter->npartitions == 0 ||
            memcmp(page->ahead_partitions, filter->partitions,
                   filter->npartitions * sizeof(*filter->partitions)) == 0);
}

static void note_partitions(struct event_page *page,
                            const struct event_filter *filter)
{
    size_t count = filter->npartitions;

    if (count > page->ahead_capacity) {
        page->ahead_partitions = mem_grow(page->ahead_partitions, count,
                                          sizeof(*page->ahead_partitions));
        page->ahead_capacity = count;
    }
    if (count > 0)
        memcpy(page->ahead_partitions, filter->partitions,
               count * sizeof(*page->ahead_partitions));
    page->nahead_partitions = count;
}

void event_page_announce(struct topic *topic, struct db *db,
                         const struct event_filter *filter,
                         const struct event_range *range,
                         struct event_page *page)
{
    struct event_range ahead = *range;
    struct page_query query;

    ahead.limit = rows_wanted(db, page, range);
    page->announced.limit = 0;
    if (range->upto <= range->after ||
        prepare_query(topic, db, filter, &ahead, ahead.limit, &query, NULL) !=
            STATUS_OK)
        return;
    db_announce(db, query.sql, query.params, query.nparams);
    page->announced = ahead;
    note_partitions(page, filter);
}

/* What was announced is read as it was announced, though the mark may have
 * moved and the limit have changed since. */
static struct event_range range_to_read(struct db *db, struct event_page *page,
                                        const struct event_filter *filter,
                                        const struct event_range *range)
{
    struct event_range ahead = page->announced;
    struct event_range own = *range;

    page->announced.limit = 0;
    if (ahead.limit > 0 && ahead.after == range->after &&
        ahead.upto <= range->upto && same_partitions(page, filter))
        return ahead;
    own.limit = rows_wanted(db, page, range);
    return own;
}

/* Takes what was fetched, when it is what the range begins with. */
static bool take_fetched(struct event_page *page,
                         const struct event_filter *filter,
                         const struct event_range *range)
{
    struct event_range fetched = page->fetched;

    page->fetched.limit = 0;
    if (fetched.limit == 0 || fetched.after != range->after ||
        fetched.upto > range->upto || !same_partitions(page, filter))
        return false;
    if (page->count > range->limit) {
        page->count = range->limit;
        page->through = page->messages[page->count - 1].position;
    }
    return true;
}

void event_page_fetch(struct topic *topic, struct db *db,
                      const struct event_filter *filter,
                      struct event_page *page)
{
    struct event_range range = page->announced;
    struct diag unseen;

    if (range.limit > 0 &&
        event_page_read(topic, db, filter, &range, page, &unseen) == STATUS_OK)
        page->fetched = range;
}

/* Of a page without rows: as it is now, which tells no less. */
static enum status read_start(const struct topic *topic, struct db *db,
                              struct event_page *page, struct diag *diag)
{
    struct high_water_mark mark;
    enum status status = high_water_mark_read(db, topic->catalog,
                                              topic_name(topic), &mark, diag);

    if (status == STATUS_OK)
        page->start = mark.start;
    return status;
}

enum status event_page_read(struct topic *topic, struct db *db,
                            const struct event_filter *filter,
                            const struct event_range *range,
                            struct event_page *page, struct diag *diag)
{
    const bool fetched = take_fetched(page, filter, range);
    const struct event_range own = range_to_read(db, page, filter, range);
    struct page_query query;
    struct db_rows *rows;
    bool cut = false;
    size_t limit;
    enum status status;

    assert(range->limit > 0);
    if (fetched)
        return STATUS_OK;
    arena_reset(&page->arena);
    page->count = 0;
    page->through = range->after;
    page->start = 0;
    if (range->upto <= range->after)
        return STATUS_OK;
    status = prepare_query(topic, db, filter, &own, own.limit, &query, diag);
    if (status != STATUS_OK)
        return status;
    status = db_query(db, query.sql, query.params, query.nparams, &rows, diag);
    if (status != STATUS_OK)
        return status;
    /* the rows of a page that was announced larger stay unread */
    limit = own.limit < range->limit ? own.limit : range->limit;
    status = read_rows(topic, rows, range, limit, page, &cut, diag);
    db_rows_close(rows);
    if (status != STATUS_OK)
        return status;
    if (topic->kind->deletes && page->count == 0)
        status = read_start(topic, db, page, diag);
    note_fit(db, page, limit, cut);
    page->through = cut ? page->messages[page->count - 1].position : query.upto;
    return status;
}

void event_page_forget(struct event_page *page)
{
    page->announced.limit = page->fetched.limit = 0;
}

void event_page_free(struct event_page *page)
{
    arena_free(&page->arena);
    mem_free(page->ahead_partitions);
    mem_free(page->messages);
    *page = (struct event_page){.arena = ARENA_EMPTY};
}

enum status event_page_count(struct topic *topic, struct db *db,
                             const struct event_filter *filter, int64_t after,
                             int64_t upto, int64_t limit, int64_t *count,
                             struct diag *diag)
{
    bool *wanted = mem_alloc(topic->ntables * sizeof(bool));
    enum status status = STATUS_OK;
    int64_t total = 0;

    choose_tables(topic, filter, wanted);
    for (size_t t = 0; t < topic->ntables && total < limit; t++) {
        struct db_value params[COUNT_PARAMS];
        int64_t matching = 0;
        bool found;

        if (!wanted[t])
            continue;
        fill_params(topic, filter, after, upto, limit - total, params);
        status = db_query_int64(db, &topic->tables[t].count, params,
                                COUNT_PARAMS, &matching, &found, diag);
        if (status != STATUS_OK)
            break;
        total += matching;
    }
    mem_free(wanted);
    if (status == STATUS_OK)
        *count = total;
    return status;
}
