"""Cases of scripts/bench with hosts that come and go: how long a partition
rests when a host joins, and when one is killed. `bench` is that program as a
module."""

import itertools
import signal
import subprocess
import threading
import time

import live

HEARTBEAT, DURATION, REBALANCE = 2.0, 10.0, 2.0  # as configured by default
KEYS = 200          # each feed has an event of every key, so of every partition
FEED_PAUSE = 0.05   # seconds
STEADY, JOINED, TAKEN = 6, 10, 20  # seconds of each stretch

TABLE = {
    "postgres": "CREATE TABLE IF NOT EXISTS commits (position BIGINT PRIMARY KEY,"
                " partition_no BIGINT NOT NULL, applied_at TIMESTAMPTZ NOT NULL"
                " DEFAULT statement_timestamp());\n",
    "mysql": "CREATE TABLE IF NOT EXISTS commits (position BIGINT PRIMARY KEY,"
             " partition_no BIGINT NOT NULL, applied_at TIMESTAMP(6) NOT NULL"
             " DEFAULT CURRENT_TIMESTAMP(6));\n",
}
SECONDS = {"postgres": "extract(epoch FROM applied_at)",
           "mysql": "unix_timestamp(applied_at)"}


def application(bench, db):
    folder = bench.WORK / "app-owners"
    for name in ("handlers", "sql"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "moontide.conf.lua").write_text("return {}\n")
    (folder / "sql/commits.sql").write_text(TABLE[db.name])
    (folder / "handlers/commits.lua").write_text("""
return require("moontide").sql_projection "commits" {
  tables = "sql/commits.sql",
  on = { ["bank.Tick"] = function(event, ctx)
    ctx:upsert("commits", { position = event.position },
      { partition_no = ctx.partition })
  end } }
""")


class Feed:
    """Appends an event of every key, again and again, until it is stopped."""

    def __init__(self, bench, command):
        self.process = subprocess.Popen([str(word) for word in command],
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL)
        self.lines = "".join(
            '{"aggregate_type":"bank.tick","aggregate_id":"T-%d",'
            '"type":"bank.Tick","payload":{}}\n' % key
            for key in range(KEYS)).encode()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.feed)
        self.thread.start()

    def feed(self):
        while not self.stopped.wait(FEED_PAUSE):
            self.process.stdin.write(self.lines)
            self.process.stdin.flush()

    def stop(self):
        self.stopped.set()
        self.thread.join()
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit("bench: the feed failed")


def play(bench, db):
    """Runs the hosts; when one joined, when it was killed, when all ended."""
    application(bench, db)
    database = bench.new_database(db, "owners", "owners")
    run = bench.host(db, "owners", database, "run", "--workers", 1)
    run.remove("--quiet")
    feed = None
    with live.Running(bench, run) as first:
        first.until_it_says("running 1 consumer")
        try:
            feed = Feed(bench, bench.host(db, "owners", database, "append",
                                          "--batch", KEYS))
            time.sleep(STEADY)
            joined = time.time()
            with live.Running(bench, run) as second:
                time.sleep(JOINED)
                killed = time.time()
                for pid in second.pids():
                    second.kill(pid)
            time.sleep(TAKEN)
        finally:
            if feed is not None:
                feed.stop()
        ended = time.time()
    return database, joined, killed, ended


def gaps(bench, db, database, start, end):
    """Longest and p99 seconds between two commits of one partition."""
    rows = db.rows(database, f"SELECT DISTINCT partition_no, {SECONDS[db.name]}"
                   " FROM commits ORDER BY 1, 2")
    commits = [line.replace("\t", "|").split("|")
               for line in rows.strip().splitlines()]
    found = []
    for _, group in itertools.groupby(commits, key=lambda row: row[0]):
        times = [float(row[1]) for row in group]
        found += [after - before for before, after in zip(times, times[1:])
                  if after > start and before < end]
    found.sort()
    return found[-1], found[int(len(found) * 0.99)]


def owners(bench, options, db):
    if db.name not in TABLE:
        return []
    worst_join, worst_take, allowed = 0.0, 0.0, None
    for _ in range(max(1, options.rounds // 2)):
        database, joined, killed, ended = play(bench, db)
        _, steady = gaps(bench, db, database, joined - STEADY + 2, joined)
        join, _ = gaps(bench, db, database, joined, killed - 0.1)
        take, _ = gaps(bench, db, database, killed - 0.1, ended - 1)
        worst_join, worst_take = max(worst_join, join), max(worst_take, take)
        allowed = min(2 * steady + HEARTBEAT, allowed or 2 * steady + HEARTBEAT)
    return [
        {"name": "join", "what": "longest rest of a partition, a host joins, s",
         "text": f"{worst_join:.2f}; goal {allowed:.2f}", "rest": worst_join,
         "goal": allowed, "reached": worst_join < allowed},
        {"name": "take-over", "what": "the same, a host is killed, s",
         "text": f"{worst_take:.2f}; goal {DURATION + REBALANCE:.2f}",
         "rest": worst_take, "goal": DURATION + REBALANCE,
         "reached": worst_take < DURATION + REBALANCE},
    ]
