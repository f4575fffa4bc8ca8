/*
 * sqlite_append DATABASE FILE -- appends the bank's NDJSON file: finds the
 * fields by their marks, counts sequence numbers in memory, 500 events a
 * transaction.
 */
#include "bare_lines.h"
#include "bare_sqlite.h"

/* Numbers go on from what the table has. */
static struct stream *stream_of(struct streams *streams, sqlite3_stmt *last,
                                const struct line *line)
{
    int fresh;
    struct stream *stream = streams_get(streams, line->key, line->hash, &fresh);

    if (!fresh)
        return stream;
    bare_bind(last, 1, line->type);
    bare_bind(last, 2, line->key);
    while (bare_row(last))
        if (sqlite3_column_type(last, 0) != SQLITE_NULL)
            stream->last = sqlite3_column_int64(last, 0);
    return stream;
}

static int64_t draw_positions(sqlite3_stmt *counter, int count)
{
    int64_t first = 0;

    sqlite3_bind_int(counter, 1, count);
    while (bare_row(counter))
        first = sqlite3_column_int64(counter, 0);
    return first;
}

static void insert_line(sqlite3_stmt *insert, sqlite3_stmt *last,
                        struct streams *streams, const char *text, int size,
                        int64_t position)
{
    struct line line = line_parse(text, size);
    struct stream *stream = stream_of(streams, last, &line);

    bare_bind(insert, 1, line.id);
    bare_bind(insert, 2, line.key);
    bare_bind(insert, 3, line.type);
    sqlite3_bind_int64(insert, 4, ++stream->last);
    bare_bind(insert, 5, line.kind);
    bare_bind(insert, 6, line.payload);
    bare_bind(insert, 7, line.metadata);
    bare_bind(insert, 8, line.at);
    sqlite3_bind_int(insert, 9, (int)(line.hash % BARE_PARTITIONS));
    sqlite3_bind_int64(insert, 10, position);
    bare_run(insert);
}

int main(int argc, char **argv)
{
    struct streams streams = {NULL, 0, 0};
    sqlite3_stmt *begin, *commit, *counter, *last, *insert;
    const char *line, *end;
    struct slice text;
    sqlite3 *db;

    if (argc != 3)
        bare_die("usage", "sqlite_append DATABASE FILE");
    text = map_file(argv[2]);
    db = bare_open(argv[1]);
    begin = bare_prepare(db, "BEGIN IMMEDIATE");
    commit = bare_prepare(db, "COMMIT");
    counter = bare_prepare(db, "UPDATE EVENT_STORE_GLOBAL_POSITION"
                               " SET val = val + ?1 WHERE id = 1"
                               " RETURNING val - ?1 + 1");
    last = bare_prepare(db, "SELECT max(sequence_no) FROM EVENT_STORE"
                            " WHERE aggregate_type = ?1 AND aggregate_id = ?2");
    insert = bare_prepare(
        db, "INSERT INTO EVENT_STORE (id, aggregate_id, aggregate_type,"
            " sequence_no, event_type, event_revision, payload, metadata,"
            " occurred_at, partition_key, global_position)"
            " VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10)");

    line = text.data;
    end = text.data + text.size;
    while (line < end) {
        const char *ahead = line;
        int64_t position;
        int count = 0;

        while (ahead < end && count < BARE_BATCH) {
            ahead = next_line(ahead, end);
            count++;
        }
        bare_run(begin);
        position = draw_positions(counter, count);
        while (line < ahead) {
            const char *next = next_line(line, end);

            insert_line(insert, last, &streams, line, (int)(next - line),
                        position++);
            line = next;
        }
        bare_run(commit);
    }
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(counter);
    sqlite3_finalize(last);
    sqlite3_finalize(insert);
    if (sqlite3_close(db) != SQLITE_OK)
        bare_die(argv[1], sqlite3_errmsg(db));
    free(streams.slots);
    return 0;
}
