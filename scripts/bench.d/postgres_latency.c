/*
 * postgres_latency URL bare|host COUNT PAUSE_MS -- appends one event at a time
 * and measures how long it takes until the account summary has committed it.
 *
 * bare: a second process waits for the notification, reads the event, and
 * writes row, checkpoint and high-water mark in one pipeline. host: a host that
 * runs already does it. In both a trigger of the read model's table tells at
 * the commit, so what hears of it costs both the same.
 *
 * Between two events lie PAUSE_MS to 2 * PAUSE_MS milliseconds. Prints ms:
 * median and 99th percentile from the sending of the append, then from its
 * answer.
 */
#include "bare_postgres.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP  20
#define PATIENCE 30000 /* milliseconds */
#define CHANNEL  "moontide_' || 'high_water_mark_store'::regclass::oid"

static double now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* --- notifications -------------------------------------------------------- */

static bool heard(PGconn *db)
{
    bool any = false;
    PGnotify *notification;

    while ((notification = PQnotifies(db)) != NULL) {
        any = true;
        PQfreemem(notification);
    }
    return any;
}

static void wait_to_hear(PGconn *db)
{
    while (!heard(db)) {
        struct pollfd fd = {PQsocket(db), POLLIN, 0};

        if (poll(&fd, 1, PATIENCE) == 0)
            bare_die("nothing is heard", "in time");
        if (PQconsumeInput(db) == 0)
            bare_die("listen", PQerrorMessage(db));
    }
}

/* --- pipelines ------------------------------------------------------------ */

static void send_one(PGconn *db, const char *name, int count,
                     const char *const *values)
{
    if (PQsendQueryPrepared(db, name, count, values, NULL, NULL, 0) == 0)
        bare_die(name, PQerrorMessage(db));
}

/* Ends the pipeline and takes the answers of `count` statements. */
static void finish(PGconn *db, int count)
{
    PGresult *result;

    if (PQpipelineSync(db) == 0)
        bare_die("sync", PQerrorMessage(db));
    for (int i = 0; i < count; i++) {
        PQclear(bare_need(db, PQgetResult(db)));
        PQclear(PQgetResult(db));
    }
    result = PQgetResult(db);
    if (PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        bare_die("sync", PQerrorMessage(db));
    PQclear(result);
}

/* --- the bare consumer ---------------------------------------------------- */

static void prepare_consumer(PGconn *db)
{
    bare_prepare(db, "select",
                 "SELECT global_position, aggregate_id, payload ->> 'iban',"
                 " gen_random_uuid(), partition_key FROM event_store"
                 " WHERE global_position > $1::bigint"
                 " ORDER BY global_position LIMIT 500");
    bare_prepare(db, "upsert",
                 "INSERT INTO account_summary (read_model_id, message_id,"
                 " state, iban, balance) VALUES ($1::text, $2::uuid,"
                 " '{\"balance\":0,\"iban\":\"' || $3::text || '\"}', $3::text,"
                 " 0) ON CONFLICT (read_model_id) DO UPDATE"
                 " SET message_id = excluded.message_id,"
                 " state = excluded.state");
    bare_prepare(db, "checkpoint",
                 "UPDATE consumer_checkpoints SET position = $1::bigint"
                 " WHERE consumer_id = (SELECT id FROM consumers WHERE"
                 " consumer_name = 'account-summary')"
                 " AND source_name = 'event-store'"
                 " AND partition_no = $2::integer");
    bare_prepare(db, "mark",
                 "UPDATE high_water_mark_store SET high_water_mark = $1::bigint"
                 " WHERE topic_name = 'event-store'");
}

/* Returns the number of events applied. */
static int apply(PGconn *db, char position[24])
{
    const char *from[] = {position};
    PGresult *page = bare_need(
        db, PQexecPrepared(db, "select", 1, from, NULL, NULL, 0));
    int count = PQntuples(page);

    if (count > 0) {
        const char *mark[] = {position};

        PQenterPipelineMode(db);
        for (int i = 0; i < count; i++) {
            const char *row[] = {PQgetvalue(page, i, 1), PQgetvalue(page, i, 3),
                                 PQgetvalue(page, i, 2)};
            const char *checkpoint[] = {PQgetvalue(page, i, 0),
                                        PQgetvalue(page, i, 4)};

            send_one(db, "upsert", 3, row);
            send_one(db, "checkpoint", 2, checkpoint);
        }
        strcpy(position, PQgetvalue(page, count - 1, 0));
        send_one(db, "mark", 1, mark);
        finish(db, 2 * count + 1);
        PQexitPipelineMode(db);
    }
    PQclear(page);
    return count;
}

static void consume(const char *url, int count, int ready)
{
    PGconn *db = bare_open(url);
    char position[24] = "0";

    prepare_consumer(db);
    bare_do(db, "DO $$ BEGIN EXECUTE 'LISTEN \"" CHANNEL " || '\"'; END $$");
    if (write(ready, "", 1) != 1)
        bare_die("ready", "the pipe is closed");
    for (int done = 0; done < count;) {
        wait_to_hear(db);
        done += apply(db, position);
    }
    PQfinish(db);
}

static void start_consumer(const char *url, int count)
{
    int pipes[2];
    char byte;

    if (pipe(pipes) != 0)
        bare_die("pipe", strerror(errno));
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        consume(url, count, pipes[1]);
        _exit(0);
    }
    if (read(pipes[0], &byte, 1) != 1)
        bare_die("the consumer", "did not start");
}

/* --- the writer ----------------------------------------------------------- */

static unsigned partition_of(const char *key)
{
    unsigned hash = 2166136261U;

    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619U;
    return hash % BARE_PARTITIONS;
}

static void prepare_writer(PGconn *db)
{
    bare_prepare(db, "own", "SELECT pg_current_xact_id()");
    bare_prepare(db, "insert",
                 "INSERT INTO event_store (id, aggregate_id, aggregate_type,"
                 " sequence_no, event_type, event_revision, payload, metadata,"
                 " occurred_at, partition_key, global_position)"
                 " VALUES (gen_random_uuid(), $1::text, 'bank.account', 0,"
                 " 'account.Opened', 0, $2::json, NULL, clock_timestamp(),"
                 " $3::bigint, nextval('event_store_global_position'))");
    bare_prepare(db, "notify", "SELECT pg_notify('" CHANNEL ", '')");
    PQenterPipelineMode(db);
}

/* Gives the time of sending; comes back with the answer. */
static double append(PGconn *db, int number)
{
    char key[24], payload[96], partition[12];
    const char *values[] = {key, payload, partition};
    double sent;

    snprintf(key, sizeof(key), "A-%07d", number);
    snprintf(payload, sizeof(payload),
             "{\"iban\":\"DE%020d\",\"owner\":\"Zoe Miller\"}", number);
    snprintf(partition, sizeof(partition), "%u", partition_of(key));
    sent = now_ms();
    send_one(db, "own", 0, NULL);
    send_one(db, "insert", 3, values);
    send_one(db, "notify", 0, NULL);
    finish(db, 3);
    return sent;
}

static void pause_for(int ms)
{
    struct timespec time;
    long us = ms * 1000L + rand() % (ms * 1000L + 1);

    time.tv_sec = us / 1000000;
    time.tv_nsec = us % 1000000 * 1000;
    nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
    PGconn *writer, *ear;
    double *sent_to, *answer_to;
    int count, pause_ms;

    if (argc != 5)
        bare_die("usage", "postgres_latency URL bare|host COUNT PAUSE_MS");
    count = atoi(argv[3]);
    pause_ms = atoi(argv[4]);
    sent_to = calloc((size_t)count, sizeof(*sent_to));
    answer_to = calloc((size_t)count, sizeof(*answer_to));
    writer = bare_open(argv[1]);
    ear = bare_open(argv[1]);
    prepare_writer(writer);
    bare_do(ear, "LISTEN bench_applied");
    if (strcmp(argv[2], "bare") == 0)
        start_consumer(argv[1], WARM_UP + count);
    for (int i = 0; i < WARM_UP + count; i++) {
        double sent, answered, seen;

        pause_for(pause_ms);
        sent = append(writer, i + 1);
        answered = now_ms();
        wait_to_hear(ear);
        seen = now_ms();
        if (i < WARM_UP)
            continue;
        sent_to[i - WARM_UP] = seen - sent;
        answer_to[i - WARM_UP] = seen - answered;
    }
    qsort(sent_to, (size_t)count, sizeof(*sent_to), by_size);
    qsort(answer_to, (size_t)count, sizeof(*answer_to), by_size);
    printf("%.3f %.3f %.3f %.3f\n", sent_to[count / 2],
           sent_to[count * 99 / 100], answer_to[count / 2],
           answer_to[count * 99 / 100]);
    PQfinish(ear);
    PQfinish(writer);
    while (wait(NULL) > 0)
        continue;
    return 0;
}
