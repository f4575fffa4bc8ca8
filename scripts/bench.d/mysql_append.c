/*
 * mysql_append URL FILE -- appends the bank's NDJSON file: finds the fields by
 * their marks, looks for ids that are there already, reads where the streams of
 * the batch end, as other writers may have gone on, 500 events a transaction
 * and an insert.
 */
#include "bare_lines.h"
#include "bare_mysql.h"

static void check_ids(MYSQL *db, const struct line *lines, int count)
{
    static struct bare_text sql;
    MYSQL_RES *result;

    sql.size = 0;
    bare_puts(&sql, "SELECT id FROM EVENT_STORE WHERE id IN (");
    for (int i = 0; i < count; i++) {
        bare_puts(&sql, i > 0 ? "," : "");
        bare_quote(&sql, lines[i].id);
    }
    bare_puts(&sql, ")");
    result = bare_rows(db, &sql);
    if (mysql_num_rows(result) > 0)
        bare_die("id", "an event is there already");
    mysql_free_result(result);
}

/* Where the streams of the batch end. */
static void read_ends(MYSQL *db, struct streams *streams,
                      const struct line *lines, int count)
{
    static struct bare_text sql;
    MYSQL_RES *result;
    MYSQL_ROW row;
    static int batch;
    int fresh, n = 0;

    batch++;
    sql.size = 0;
    bare_puts(&sql, "SELECT aggregate_id, MAX(sequence_no) FROM EVENT_STORE"
                    " WHERE aggregate_type = ");
    bare_quote(&sql, lines[0].type);
    bare_puts(&sql, " AND aggregate_id IN (");
    for (int i = 0; i < count; i++) {
        struct stream *stream = streams_get(streams, lines[i].key,
                                            lines[i].hash, &fresh);

        if (stream->batch == batch)
            continue;
        stream->batch = batch;
        bare_puts(&sql, n++ > 0 ? "," : "");
        bare_quote(&sql, lines[i].key);
    }
    bare_puts(&sql, ") GROUP BY aggregate_id");
    if (n == 0)
        return;
    result = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(result)) != NULL) {
        struct slice key = bare_cell(row, mysql_fetch_lengths(result), 0);

        streams_get(streams, key, bare_fnv1a(key), &fresh)->last = strtoll(
            row[1], NULL, 10);
    }
    mysql_free_result(result);
}

static int64_t draw_positions(MYSQL *db, int count)
{
    static struct bare_text sql;

    sql.size = 0;
    bare_puts(&sql, "UPDATE EVENT_STORE_GLOBAL_POSITION"
                    " SET val = LAST_INSERT_ID(val + ");
    bare_put_int(&sql, count);
    bare_puts(&sql, ") WHERE id = 1");
    bare_run(db, &sql);
    return (int64_t)mysql_insert_id(db) - count + 1;
}

/* 2025-01-02T03:04:05.000006Z: the server's own form ends before the Z. */
static struct slice time_of(const struct line *line)
{
    return (struct slice){line->at.data, line->at.size - 1};
}

static void write_batch(MYSQL *db, struct streams *streams,
                        const struct line *lines, int count)
{
    static struct bare_text sql;
    int64_t position;
    int fresh;

    bare_do(db, "BEGIN");
    check_ids(db, lines, count);
    read_ends(db, streams, lines, count);
    position = draw_positions(db, count);
    sql.size = 0;
    bare_puts(&sql, "INSERT INTO EVENT_STORE (id, aggregate_id, aggregate_type,"
                    " sequence_no, event_type, payload, metadata, occurred_at,"
                    " partition_key, global_position) VALUES ");
    for (int i = 0; i < count; i++) {
        const struct line *line = &lines[i];
        const struct slice texts[] = {line->id, line->key, line->type};
        const struct slice more[] = {line->kind, line->payload, line->metadata,
                                     time_of(line)};

        bare_puts(&sql, i > 0 ? ",(" : "(");
        for (int t = 0; t < 3; t++) {
            bare_quote(&sql, texts[t]);
            bare_puts(&sql, ",");
        }
        bare_put_int(
            &sql, ++streams_get(streams, line->key, line->hash, &fresh)->last);
        bare_puts(&sql, ",");
        for (int t = 0; t < 4; t++) {
            bare_quote(&sql, more[t]);
            bare_puts(&sql, ",");
        }
        bare_put_int(&sql, (int64_t)(line->hash % BARE_PARTITIONS));
        bare_puts(&sql, ",");
        bare_put_int(&sql, position + i);
        bare_puts(&sql, ")");
    }
    bare_run(db, &sql);
    bare_do(db, "COMMIT");
}

int main(int argc, char **argv)
{
    static struct line lines[BARE_BATCH];
    struct streams streams = {NULL, 0, 0};
    const char *at, *end;
    struct slice text;
    MYSQL *db;

    if (argc != 3)
        bare_die("usage", "mysql_append URL FILE");
    text = map_file(argv[2]);
    db = bare_open(argv[1]);
    at = text.data;
    end = text.data + text.size;
    while (at < end) {
        int count = 0;

        while (at < end && count < BARE_BATCH) {
            const char *next = next_line(at, end);

            lines[count++] = line_parse(at, (int)(next - at));
            at = next;
        }
        write_batch(db, &streams, lines, count);
    }
    mysql_close(db);
    free(streams.slots);
    return 0;
}
