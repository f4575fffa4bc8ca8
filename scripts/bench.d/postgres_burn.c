/*
 * postgres_burn URL PART OF EVENTS -- counts the events of a part of the
 * partitions by key, as two loops side by side share them: pages of 500, for
 * each event half a millisecond of processor time, one upsert and one
 * checkpoint for a page. Ends when so many events are counted.
 */
#include "bare_postgres.h"

#define BURN_US 500

static void burn(void)
{
    struct timespec time;
    int64_t end;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    end = time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000 + BURN_US;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    } while (time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000 < end);
}

static void prepare(PGconn *db)
{
    bare_prepare(db, "page",
                 "SELECT global_position, aggregate_id FROM event_store"
                 " WHERE global_position > $1::bigint"
                 " AND partition_key % $2::bigint = $3::bigint"
                 " ORDER BY global_position LIMIT 500");
    bare_prepare(db, "upsert",
                 "INSERT INTO bare_burn AS b (key, n) SELECT k, count(*)"
                 " FROM unnest($1::text[]) AS u (k) GROUP BY k"
                 " ON CONFLICT (key) DO UPDATE SET n = b.n + excluded.n");
    bare_prepare(db, "move",
                 "INSERT INTO bare_burn_checkpoint (part, position)"
                 " VALUES ($1::bigint, $2::bigint) ON CONFLICT (part)"
                 " DO UPDATE SET position = excluded.position");
}

/* Returns how many events the page had. */
static int count_page(PGconn *db, int64_t part, int64_t of, int64_t *position)
{
    static struct bare_array keys;
    struct bare_params from = {.count = 0}, row = {.count = 0};
    struct bare_params move = {.count = 0};
    PGresult *page;
    int count;

    bare_do(db, "BEGIN");
    bare_int_param(&from, *position);
    bare_int_param(&from, of);
    bare_int_param(&from, part);
    page = bare_run(db, "page", &from);
    count = PQntuples(page);
    bare_array_start(&keys, OID_TEXT);
    for (int i = 0; i < count; i++) {
        burn();
        bare_array_add(&keys, bare_column(page, i, 1));
        *position = bare_int(page, i, 0);
    }
    PQclear(page);
    if (count > 0) {
        bare_array_param(&row, &keys);
        bare_change(db, "upsert", &row, -1);
        bare_int_param(&move, part);
        bare_int_param(&move, *position);
        bare_change(db, "move", &move, 1);
    }
    bare_do(db, "COMMIT");
    return count;
}

int main(int argc, char **argv)
{
    int64_t position = 0;
    PGconn *db;

    if (argc != 5)
        bare_die("usage", "postgres_burn URL PART OF EVENTS");
    db = bare_open(argv[1]);
    prepare(db);
    for (long left = atol(argv[4]); left > 0;)
        left -= count_page(db, atol(argv[2]), atol(argv[3]), &position);
    PQfinish(db);
    return 0;
}
