"""Cases of scripts/bench with a host that stays: how soon it has applied an
event, what it costs while there is nothing to do, what a second worker gains.
`bench` is that program as a module."""

import os
import pathlib
import signal
import statistics
import subprocess
import time

LATENCY_GOAL = (2.0, 3.0)  # times the bare loop's median and 99th percentile
POLLING_GOAL = 30          # ms, of the 99th percentile
SCALING_GOAL = 0.90
IDLE_GOAL = 0.02           # of a core
CONSUMERS, PARTITIONS = 20, 50
BURN_EVENTS = 8_000
PATIENCE = 120             # seconds

TELL = ("CREATE FUNCTION bench_told() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_notify(''bench_applied'', ''''); RETURN NULL; END';"
        " CREATE TRIGGER bench_told AFTER INSERT OR UPDATE ON account_summary"
        " FOR EACH STATEMENT EXECUTE FUNCTION bench_told()")


class Running:
    """A host in the background, ended at the end of the block."""

    def __init__(self, bench, command, **environment):
        self.log = bench.WORK / "live.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdout=log, stderr=log,
                env={**os.environ, **environment})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def until(self, condition, what, pause=0.01):
        limit = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > limit or self.process.poll() is not None:
                raise SystemExit(f"bench: no {what}\n{self.log.read_text()}")
            time.sleep(pause)

    def until_it_says(self, text):
        self.until(lambda: text in self.log.read_text(), text)

    @staticmethod
    def kill(pid):
        os.kill(pid, signal.SIGKILL)

    def pids(self):
        """Its own and its workers'."""
        found = {self.process.pid}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) in found:
                found.add(int(stat.parent.name))
        return found


def processor_seconds(pids):
    total = 0
    for pid in pids:
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        fields = stat.rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def memory_of(pids):
    """Bytes, what processes share counted once."""
    total = 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n"):
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


# --- latency ------------------------------------------------------------------


def prepared(bench, db, name):
    bench.new_database(db, "keyed", name)
    db.psql(db.url(name), TELL)
    return name


def one_by_one(bench, db, mode, database, count, pause_ms):
    bench.wait_until_quiet(bench.QUIET_LIMIT)
    words = bench.must([bench.WORK / "postgres_latency", db.bare(database), mode,
                        count, pause_ms]).split()
    return [float(word) for word in words]


def latency_of_host(bench, db, database, count, pause_ms, **environment):
    command = bench.host(db, "keyed", prepared(bench, db, database), "run")
    command.remove("--quiet")
    with Running(bench, command, **environment) as host:
        host.until_it_says("running 1 consumer")
        return one_by_one(bench, db, "host", database, count, pause_ms)


def latency(bench, options, db):
    if db.name != "postgres":
        return []
    bare, told, polled = [], [], []
    for _ in range(options.rounds):
        bare.append(one_by_one(bench, db, "bare", prepared(bench, db, "bare"),
                               300, 20))
        told.append(latency_of_host(bench, db, "host", 300, 20))
        polled.append(latency_of_host(
            bench, db, "polled", 60, 60, MOONTIDE_NOTIFY="false",
            MOONTIDE_POLL_MAX_INTERVAL="20ms"))
    ratios = [statistics.median(h[i] / b[i] for h, b in zip(told, bare))
              for i in range(4)]
    host, loop, poll = ([statistics.median(run[i] for run in runs)
                         for i in range(4)] for runs in (told, bare, polled))
    return [
        {"name": "latency", "what": "append sent to read model committed, ms",
         "text": (f"host {host[0]:.2f} p50 {host[1]:.2f} p99, bare {loop[0]:.2f}"
                  f" {loop[1]:.2f}: {ratios[0]:.2f} and {ratios[1]:.2f} times;"
                  f" from the append's answer host {host[2]:.2f} {host[3]:.2f},"
                  f" bare {loop[2]:.2f} {loop[3]:.2f}; goal {LATENCY_GOAL[0]:.1f}"
                  f" and {LATENCY_GOAL[1]:.1f}"),
         "host": host, "bare": loop, "ratios": ratios, "goal": LATENCY_GOAL,
         "reached": (ratios[0] <= LATENCY_GOAL[0]
                     and ratios[1] <= LATENCY_GOAL[1])},
        {"name": "latency-polling", "what": "the same, polling every 20 ms",
         "text": (f"host {poll[0]:.1f} p50 {poll[1]:.1f} p99;"
                  f" goal {POLLING_GOAL} p99"),
         "host": poll, "goal": POLLING_GOAL, "reached": poll[1] < POLLING_GOAL},
    ]


# --- idle ---------------------------------------------------------------------


def many_consumers(bench):
    folder = bench.WORK / "app-idle"
    (folder / "handlers").mkdir(parents=True, exist_ok=True)
    (folder / "moontide.conf.lua").write_text(
        f"return {{ partitions = {PARTITIONS} }}\n")
    for number in range(1, CONSUMERS + 1):
        (folder / f"handlers/p{number}.lua").write_text(
            'return require("moontide").projection "idle-%d" { on = {'
            ' ["bank.Nothing"] = function(state) state.n = 1 end } }\n' % number)


def counters(db, database):
    """Transactions so far, connections, processes of the server behind them."""
    if db.name != "postgres":
        return None
    text = db.rows(database, "SELECT pg_stat_clear_snapshot(), xact_commit +"
                   " xact_rollback, (SELECT string_agg(pid::text, ',') FROM"
                   " pg_stat_activity WHERE datname = current_database() AND pid"
                   " <> pg_backend_pid()) FROM pg_stat_database WHERE datname ="
                   " current_database()")
    _, transactions, pids = text.strip().split("|")
    return int(transactions), [int(pid) for pid in pids.split(",")]


def idle_at(bench, db, name, seconds, **environment):
    database = f"idle_{name}"
    db.create(database)
    bench.must(bench.host(db, "idle", database, "run", "--until-idle"))
    command = bench.host(db, "idle", database, "run")
    command.remove("--quiet")
    with Running(bench, command, **environment) as host:
        host.until_it_says(f"running {CONSUMERS} consumers")
        time.sleep(5)  # the pauses have grown
        before, pids = counters(db, database), host.pids()
        cpu, start = processor_seconds(pids), time.monotonic()
        server = processor_seconds(before[1]) if before else 0
        time.sleep(seconds)
        elapsed = time.monotonic() - start
        share = (processor_seconds(pids) - cpu) / elapsed
        report = {"name": f"idle-{name}", "processor": share,
                  "bytes_of_all": memory_of(pids), "processes": len(pids)}
        text = (f"{share * 100:.2f} % of a core, "
                f"{report['bytes_of_all'] / 2**20:.0f} MiB in {len(pids)} processes")
        if before:
            after = counters(db, database)
            report["transactions"] = (after[0] - before[0]) / elapsed
            report["connections"] = len(after[1])
            report["server"] = (processor_seconds(before[1]) - server) / elapsed
            text += (f", {report['transactions']:.1f} transactions/s over"
                     f" {report['connections']} connections, which cost the server"
                     f" {report['server'] * 100:.2f} %")
    report["what"] = f"{CONSUMERS} consumers x {PARTITIONS} partitions, nothing to do"
    report["text"] = text
    return report


def idle(bench, options, db):
    many_consumers(bench)
    seconds = 20 if options.rounds > 1 else 5
    usual = idle_at(bench, db, "default", seconds)
    usual["goal"] = IDLE_GOAL
    usual["reached"] = usual["processor"] < IDLE_GOAL
    usual["text"] += f"; goal {IDLE_GOAL * 100:.0f} %"
    often = idle_at(bench, db, "20ms", seconds, MOONTIDE_POLL_MAX_INTERVAL="20ms")
    often["goal"] = None
    return [usual, often]


# --- scaling ------------------------------------------------------------------


def turns_of_burn():
    """How many turns of the handler's loop take half a millisecond here."""
    lua = ("local function burn(n) local x = 0 for i = 1, n do x = x + i % 7 end"
           " return x end burn(1e6) local s = os.clock() burn(2e7)"
           " print(2e7 * 500e-6 / (os.clock() - s))")
    done = subprocess.run(["luajit", "-joff", "-e", lua], check=True,
                          stdout=subprocess.PIPE, text=True)
    return int(float(done.stdout))


def burning(bench):
    folder = bench.WORK / "app-burn"
    (folder / "handlers").mkdir(parents=True, exist_ok=True)
    (folder / "moontide.conf.lua").write_text("return {}\n")
    (folder / "handlers/burn.lua").write_text(f"""
local function burn(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
return require("moontide").projection "burn" {{ on = {{
  ["bank.Burn"] = function(state)
    burn({turns_of_burn()})
    state.n = (state.n or 0) + 1
  end }} }}
""")
    path = bench.WORK / "burn.ndjson"
    path.write_text("".join(
        '{"aggregate_type":"bank.burn","aggregate_id":"B-%d","type":"bank.Burn",'
        '"payload":{}}\n' % (number % 1000) for number in range(BURN_EVENTS)))
    return path


def burn_host(bench, db, path, workers):
    """Seconds from the append to the last event's commit. The read models' ids
    tell when that was: to ask all the time would take a core from the workers."""
    database = bench.new_database(db, "burn", "host")
    command = bench.host(db, "burn", database, "run", "--workers", workers)
    command.remove("--quiet")
    bench.wait_until_quiet(bench.QUIET_LIMIT)
    with Running(bench, command) as host:
        host.until_it_says("running 1 consumer")
        host.until(lambda: int(db.rows(
            database, "SELECT count(DISTINCT instance_id) FROM"
            " partition_ownership")) == workers, "worker with partitions")
        bench.must(bench.host(db, "burn", database, "append", "--batch",
                              BURN_EVENTS, path))
        start = time.time()
        host.until(lambda: int(db.rows(
            database, "SELECT coalesce(sum((state::json ->> 'n')::int), 0)"
            " FROM burn")) == BURN_EVENTS, "end of the events", pause=0.5)
        last = db.rows(database, "SELECT max(message_id::text) FROM burn").strip()
        return int(last.replace("-", "")[:12], 16) / 1000 - start


def burn_bare(bench, db, path, loops):
    database = bench.new_database(db, "burn", "bare")
    db.psql(db.url(database), "CREATE TABLE bare_burn (key text PRIMARY KEY,"
            " n bigint)", "CREATE TABLE bare_burn_checkpoint (part bigint PRIMARY"
            " KEY, position bigint)")
    bench.must(bench.host(db, "burn", database, "append", "--batch", BURN_EVENTS,
                          path))
    db.analyze(database)
    shares = [int(db.rows(database, "SELECT count(*) FROM event_store WHERE"
                          f" partition_key % {loops} = {part}"))
              for part in range(loops)]
    bench.wait_until_quiet(bench.QUIET_LIMIT)
    start = time.monotonic()
    running = [subprocess.Popen([bench.WORK / "postgres_burn", db.bare(database),
                                 str(part), str(loops), str(shares[part])])
               for part in range(loops)]
    if any(loop.wait() for loop in running):
        raise SystemExit("bench: a bare loop failed")
    return time.monotonic() - start


def scaling(bench, options, db):
    if db.name != "postgres":
        return []
    path = burning(bench)
    gains = []
    for _ in range(options.rounds):
        one_bare, two_bare = (burn_bare(bench, db, path, n) for n in (1, 2))
        one, two = (burn_host(bench, db, path, n) for n in (1, 2))
        gains.append((one / two, one_bare / two_bare, BURN_EVENTS / one))
    host, bare, rate = (statistics.median(column) for column in zip(*gains))
    ratio = statistics.median(gain[0] / gain[1] for gain in gains)
    return [{"name": "scaling", "what": "a second worker, 0.5 ms for each event",
             "text": (f"host x{host:.2f} (one: {rate:,.0f}/s), bare x{bare:.2f}:"
                      f" {ratio:.2f}; goal {SCALING_GOAL:.2f}"),
             "host_gain": host, "bare_gain": bare, "ratio": ratio,
             "goal": SCALING_GOAL, "reached": ratio >= SCALING_GOAL}]


# --- reload -------------------------------------------------------------------


RELOAD_GOAL = 250  # ms, of the 99th percentile
SAVES = 25         # of a round: the log tells each of so many
PAGE = 20          # events of a transaction, so that batches are short


def reloading(bench):
    folder = bench.WORK / "app-reload"
    (folder / "handlers").mkdir(parents=True, exist_ok=True)
    (folder / "moontide.conf.lua").write_text(f"return {{ batch = {PAGE} }}\n")
    return folder / "handlers/seen.lua"


def save(script, number):
    """As an editor does: another file in the place of the old one."""
    fresh = script.with_suffix(".new")
    fresh.write_text('return require("moontide").projection "seen" { on = {'
                     ' ["account.Deposited"] = function(state)'
                     f' state.version = {number} end }} }}\n')
    fresh.rename(script)


def saved_to_live(bench, db, events, saves):
    """Milliseconds from each save to the word that all workers run it."""
    script = reloading(bench)
    save(script, 0)
    database = bench.new_database(db, "reload", "reload")
    command = bench.host(db, "reload", database, "run")
    command.remove("--quiet")
    bench.wait_until_quiet(bench.QUIET_LIMIT)
    times = []
    with Running(bench, command) as host:
        host.until_it_says("running 1 consumer")
        load = subprocess.Popen([str(word) for word in bench.host(
            db, "reload", database, "append", "--batch", PAGE, events)])
        try:
            for number in range(1, saves + 1):
                start = time.monotonic()
                save(script, number)
                while host.log.read_text().count("reloaded the scripts") < number:
                    if time.monotonic() - start > PATIENCE:
                        raise SystemExit(f"bench: no reload\n{host.log.read_text()}")
                    time.sleep(0.001)
                times.append((time.monotonic() - start) * 1000)
        finally:
            load.kill()
            load.wait()
    return times


def reload(bench, options, db):
    events = bench.stream(max(options.events, 20_000))
    times = sorted(ms for _ in range(options.rounds)
                   for ms in saved_to_live(bench, db, events, SAVES))
    middle = statistics.median(times)
    worst = times[min(len(times) - 1, int(len(times) * 0.99))]
    return [{"name": "reload", "what": "saved file to live in all workers, ms",
             "text": (f"{middle:.0f} p50 {worst:.0f} p99 of {len(times)} saves"
                      f" under load; goal {RELOAD_GOAL} p99"),
             "p50": middle, "p99": worst, "saves": len(times),
             "goal": RELOAD_GOAL, "reached": worst < RELOAD_GOAL}]
