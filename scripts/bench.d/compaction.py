"""The case `compaction` of scripts/bench: how much longer the batches of a live
projection take while the topic of a read model is compacted beside them, from
its first message to its last. `bench` is that program as a module.

A host applies the same events again and again, in short slices, in turns with
compaction and without, until all messages are passed. Each pair of slices gives
one ratio of medians, so that what else the machine does spoils few of them."""

import sqlite3
import statistics
import time

from live import Running

MESSAGES = 1_000_000  # every tenth supersedes one that lies half as far
BATCH = 500           # events of a transaction, so that batches are alike
GOAL = 1.05
SCHEDULES = ("none", "10ms")
SLICE = 120           # seconds that one may take
LIMIT = 1500

ROW = ("'totals', n, n % 12, {key}, 'total', 0, {payload}, NULL, 1, {no},"
       " '2024-02-29 00:00:00'")
FILL = {
    "sqlite": [
        "INSERT INTO READ_MODEL_CAPTURE_RECORDS WITH RECURSIVE seq (n) AS"
        f" (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < {MESSAGES})"
        " SELECT printf('00000000-0000-7000-8000-%012d', n), "
        + ROW.format(key="'key-' || iif(n % 10, n, n / 2 + (n / 2 % 10 = 0))",
                     payload="printf('{\"text\":\"%0150d\"}', n)", no="0")
        .replace("00:00:00'", "00:00:00.000000Z'").replace("29 00", "29T00")
        + " FROM seq",
        "INSERT INTO READ_MODEL_CAPTURE_POSITIONS VALUES ('totals',"
        f" {MESSAGES})",
        "CREATE TABLE bench_batches (at REAL)",
        "CREATE TRIGGER bench_batch AFTER UPDATE ON CONSUMER_CHECKPOINTS WHEN"
        " NEW.partition_no = 0 BEGIN INSERT INTO bench_batches VALUES"
        " (julianday('now') * 86400); END",
    ],
    "postgres": [
        "INSERT INTO read_model_capture_records SELECT gen_random_uuid(), "
        + ROW.format(key="'key-' || CASE WHEN n % 10 > 0 THEN n ELSE n / 2 +"
                         " (n / 2 % 10 = 0)::int END",
                     payload="'{\"text\":\"' || lpad(n::text, 150, '0') ||"
                             " '\"}'", no="false")
        + f" FROM generate_series(1, {MESSAGES}) AS n",
        "DELETE FROM high_water_mark_store WHERE topic_name ="
        " 'read-model-topics'",
        "INSERT INTO high_water_mark_store (topic_name, high_water_mark) VALUES"
        f" ('read-model-topics', {MESSAGES})",
        f"SELECT setval('read_model_capture_positions', {MESSAGES})",
        "CREATE TABLE bench_batches (at float)",
        "CREATE FUNCTION bench_batch() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO bench_batches VALUES"
        " (extract(epoch FROM clock_timestamp())); RETURN NULL; END'",
        "CREATE TRIGGER bench_batch AFTER UPDATE ON consumer_checkpoints"
        " FOR EACH STATEMENT EXECUTE FUNCTION bench_batch()",
        "VACUUM ANALYZE",
    ],
    "mysql": [
        "INSERT INTO READ_MODEL_CAPTURE_RECORDS SELECT"
        " concat('00000000-0000-7000-8000-', lpad(n, 12, '0')), "
        + ROW.format(key="concat('key-', if(n % 10, n, n div 2 + (n div 2 % 10"
                         " = 0)))",
                     payload="concat('{\"text\":\"', lpad(n, 150, '0'), '\"}')",
                     no="0")
        + f" FROM (SELECT seq AS n FROM seq_1_to_{MESSAGES}) AS seq",
        "INSERT INTO READ_MODEL_CAPTURE_POSITIONS VALUES ('totals',"
        f" {MESSAGES})",
        "CREATE TABLE bench_batches (at DOUBLE)",
        "CREATE TRIGGER bench_batch AFTER UPDATE ON CONSUMER_CHECKPOINTS FOR"
        " EACH ROW INSERT INTO bench_batches SELECT unix_timestamp(sysdate(6))"
        " FROM DUAL WHERE NEW.partition_no = 0",
    ],
}


def run_sql(db, database, statements):
    if db.name == "sqlite":
        connection = sqlite3.connect(db.path(database))
        for sql in statements:
            connection.execute(sql)
        connection.commit()
        connection.close()
    elif db.name == "postgres":
        db.psql(db.url(database), *statements)
    else:
        for sql in statements:
            db.run(sql, f"bench_{database}")


def number(db, database, sql):
    rows = db.rows(database, sql)
    return float(rows[0][0] if db.name == "sqlite" else rows.strip())


def through(db, database):
    return number(db, database, "SELECT coalesce(max(compacted_through), 0)"
                  " FROM TOPIC_COMPACTION")


def batches(bench, db, database, end, schedule):
    """Seconds of each batch that a host needs for all events."""
    run_sql(db, database, ["UPDATE CONSUMER_CHECKPOINTS SET position = 0",
                           "DELETE FROM bench_batches"])
    command = bench.host(db, "keyed", database, "run", "--workers", "1")
    limit = time.monotonic() + SLICE
    with Running(bench, command, MOONTIDE_BATCH=str(BATCH),
                 MOONTIDE_COMPACTION_SCHEDULE=schedule) as host:
        while number(db, database, "SELECT min(position) FROM"
                     " CONSUMER_CHECKPOINTS") < end:
            if time.monotonic() > limit or host.process.poll() is not None:
                raise SystemExit("bench: the events are not applied\n"
                                 + host.log.read_text())
            time.sleep(0.25)
    rows = db.rows(database, "SELECT at FROM bench_batches ORDER BY at")
    times = [float(row[0]) for row in rows] if db.name == "sqlite" else [
        float(word) for word in rows.split()]
    return [after - before for before, after in zip(times, times[1:])]


def pairs_until_compacted(bench, db, database, end, begun):
    """Batch times (without, with) of each pair of slices through which
    compaction went on, and how many messages it has passed."""
    pairs, passed = [], 0
    while passed < MESSAGES:
        if time.monotonic() - begun > LIMIT:
            bench.say(f"bench: only {passed:,.0f} messages are passed")
            break
        before, times = passed, {}
        for schedule in (SCHEDULES if len(pairs) % 2 == 0 else SCHEDULES[::-1]):
            times[schedule] = batches(bench, db, database, end, schedule)
        passed = through(db, database)
        # in the last one it ended somewhere
        if before < passed < MESSAGES or (passed == MESSAGES and not pairs):
            pairs.append([times[schedule] for schedule in SCHEDULES])
    return pairs, passed


def ninety_ninth(times):
    return sorted(times)[int(len(times) * 0.99)]


def around_median(values):
    """The median, and between which values it lies (95 %, by rank)."""
    ranked, count = sorted(values), len(values)
    reach = 0.98 * count ** 0.5
    low = ranked[max(0, int(count / 2 - reach))]
    high = ranked[min(count - 1, int(count / 2 + reach))]
    return statistics.median(ranked), low, high


def compaction(bench, options, db):
    begun = time.monotonic()
    database = bench.new_database(db, "keyed", "compaction")
    bench.must(bench.host(db, "keyed", database, "append",
                          bench.stream(options.events)))
    run_sql(db, database, FILL[db.name])
    end = number(db, database, "SELECT max(global_position) FROM EVENT_STORE")
    bench.wait_until_quiet(bench.QUIET_LIMIT)
    batches(bench, db, database, end, SCHEDULES[0])
    pairs, passed = pairs_until_compacted(bench, db, database, end, begun)
    if not pairs:
        raise SystemExit("bench: nothing is compacted")
    kept = number(db, database, "SELECT count(*) FROM"
                  " READ_MODEL_CAPTURE_RECORDS")
    if passed >= MESSAGES and kept != MESSAGES - MESSAGES // 10:
        raise SystemExit(f"bench: {kept} messages are kept")
    db.drop(database)
    ratio, low, high = around_median(
        [statistics.median(beside) / statistics.median(alone)
         for alone, beside in pairs])
    tail = statistics.median(ninety_ninth(beside) / ninety_ninth(alone)
                             for alone, beside in pairs)
    alone, beside = (statistics.median(1000 * statistics.median(pair[i])
                                       for pair in pairs) for i in (0, 1))
    busy = sum(sum(pair[1]) for pair in pairs)
    return [{"name": "compaction",
             "what": "p50 of batch time while a topic is compacted",
             "text": (f"batches of {BATCH}: {alone:.2f} ms p50, beside"
                      f" compaction {beside:.2f} ms: {ratio:.3f}"
                      f" [{low:.3f}..{high:.3f}] of {len(pairs)} pairs, p99"
                      f" {tail:.2f}; {passed:,.0f} messages passed in"
                      f" {busy:.0f} s, {MESSAGES - kept:,.0f} deleted;"
                      f" goal {GOAL:.2f}"),
             "alone_ms": alone, "beside_ms": beside, "ratio": ratio,
             "low": low, "high": high, "pairs": len(pairs),
             "passed": passed, "goal": GOAL,
             "reached": ratio < GOAL and passed >= MESSAGES}]
