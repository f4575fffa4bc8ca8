"""The case `compaction` of scripts/bench: how much longer the batches of a live
projection take while the topic of a read model is compacted beside them.
`bench` is that program as a module."""

import sqlite3
import statistics
import time

from live import Running

MESSAGES = 1_000_000  # every tenth supersedes one that lies half as far
BATCH = 500           # events of a transaction, so that batches are alike
GOAL = 1.05
PATIENCE = 300        # seconds

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


def batches(bench, db, database, events, schedule):
    """Seconds of each batch that a host needs for the events."""
    run_sql(db, database, ["DELETE FROM bench_batches"])
    bench.must(bench.host(db, "keyed", database, "append", events))
    end = number(db, database, "SELECT max(global_position) FROM EVENT_STORE")
    command = bench.host(db, "keyed", database, "run", "--workers", "1")
    bench.wait_until_quiet(bench.QUIET_LIMIT)
    limit = time.monotonic() + PATIENCE
    with Running(bench, command, MOONTIDE_BATCH=str(BATCH),
                 MOONTIDE_COMPACTION_SCHEDULE=schedule) as host:
        while number(db, database, "SELECT min(coalesce(position, 0)) FROM"
                     " CONSUMER_CHECKPOINTS") < end:
            if time.monotonic() > limit or host.process.poll() is not None:
                raise SystemExit("bench: the events are not applied\n"
                                 + host.log.read_text())
            time.sleep(0.25)
    rows = db.rows(database, "SELECT at FROM bench_batches ORDER BY at")
    times = [float(row[0]) for row in rows] if db.name == "sqlite" else [
        float(word) for word in rows.split()]
    return [after - before for before, after in zip(times, times[1:])]


def pieces(bench, options):
    """Events for each of the runs, and for one before them."""
    count = 2 * options.rounds + 1
    with open(bench.stream(options.events * count), "rb") as lines:
        for piece in range(count):
            path = bench.WORK / f"piece-{piece}.ndjson"
            with open(path, "wb") as out:
                for _ in range(options.events):
                    out.write(next(lines))
            yield path


def compaction(bench, options, db):
    database = bench.new_database(db, "keyed", "compaction")
    run_sql(db, database, FILL[db.name])
    events = list(pieces(bench, options))
    batches(bench, db, database, events.pop(), "none")
    ratios, tails, middles, passed = [], [], [], []
    for turn in range(options.rounds):
        order = ("none", "10ms") if turn % 2 == 0 else ("10ms", "none")
        times = {schedule: batches(bench, db, database, events.pop(), schedule)
                 for schedule in order}
        middle = {key: statistics.median(times[key]) for key in times}
        tail = {key: sorted(times[key])[int(len(times[key]) * 0.99)]
                for key in times}
        ratios.append(middle["10ms"] / middle["none"])
        tails.append(tail["10ms"] / tail["none"])
        middles.append((middle["none"] * 1000, middle["10ms"] * 1000))
        passed.append(number(db, database, "SELECT coalesce(max("
                             "compacted_through), 0) FROM TOPIC_COMPACTION"))
    if not all(a < b for a, b in zip([0, *passed], passed)):
        raise SystemExit(f"bench: not compacted all the time: {passed}")
    before = number(db, database, "SELECT count(*) FROM"
                    " READ_MODEL_CAPTURE_RECORDS")
    rest = bench.measured(bench.host(db, "keyed", database, "run",
                                     "--until-idle"))
    kept = number(db, database, "SELECT count(*) FROM"
                  " READ_MODEL_CAPTURE_RECORDS")
    if kept != MESSAGES - MESSAGES // 10:
        raise SystemExit(f"bench: {kept} messages are kept")
    db.drop(database)
    ratio = statistics.median(ratios)
    alone, beside = (statistics.median(column) for column in zip(*middles))
    rate = (MESSAGES - passed[-1]) / rest.seconds
    return [{"name": "compaction",
             "what": "p50 of batch time while a topic is compacted",
             "text": (f"batches of {BATCH}: {alone:.1f} ms p50, beside"
                      f" compaction {beside:.1f} ms: {ratio:.3f}"
                      f" [{min(ratios):.3f}..{max(ratios):.3f}], p99"
                      f" {statistics.median(tails):.2f}; {passed[-1]:,.0f}"
                      f" messages passed meanwhile, the rest at {rate:,.0f}/s"
                      f" without rests ({before - kept:,.0f} deleted);"
                      f" goal {GOAL:.2f}"),
             "alone_ms": alone, "beside_ms": beside, "ratio": ratio,
             "low": min(ratios), "high": max(ratios), "goal": GOAL,
             "reached": ratio < GOAL}]
