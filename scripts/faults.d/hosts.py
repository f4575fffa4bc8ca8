"""Hosts that divide the partitions of one database, while workers, hosts,
servers, connections and scripts are killed, stopped, cut and changed.

Handlers note each message in the transaction that applies it, with the lease
that it is applied under. From these notes alone the judge proves that every
message was applied once and in the order of its key, and under no lease that
had been lost."""

import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time
import uuid

import clocks
import proxy as proxies
from campaigns import BUSY, DRAIN_DEADLINE, UNAVAILABLE, Host, end_well, kill
from databases import DEADLINE, ROOT, comes_true, fail
from processes import Tracked

LEASE = 1.0      # seconds, as in the application's configuration
KEYS = 97
CHUNK = 200      # events of one append
BACKLOG = 1500   # events that the hosts may be behind
PATIENCE = DEADLINE  # seconds in which something must be applied
TRIES = 20       # of a fault that needs the right moment
PAUSES = (0.05, 0.4)  # seconds between faults
FAR = 3600  # seconds of a big step of a clock

SERIAL = {"sqlite": "INTEGER", "postgres": "BIGSERIAL",
          "mysql": "BIGINT NOT NULL AUTO_INCREMENT"}

# What happens, and how often compared with the others. The ones of SQLite need
# no server.
EVERYWHERE = {"kill a worker": 8, "kill a host": 4, "stop a worker": 3,
              "stop a host": 2, "hold a lock": 2, "reload": 4, "leave": 2, "join": 2,
              "step a clock forward": 2, "step a clock back": 2}
SERVERS = {"end a session": 4, "cut before COMMIT": 4, "cut after COMMIT": 4,
           "leave prepared": 2, "crash the server": 1}


def applied(database):
    return database.query("SELECT count(*) FROM entries")[0][0]


def is_worker(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"worker" in words


class Writer(threading.Thread):
    """Appends as long as the hosts follow. An event brings its id, so that a
    chunk whose answer was lost may be appended again."""

    def __init__(self, host, chance):
        super().__init__(daemon=True)
        self.host, self.chance = host, chance
        self.database = host.database.again()
        self.last = collections.Counter()
        self.count = 0
        self.end = threading.Event()
        self.problem = None

    def run(self):
        try:
            while not self.end.is_set():
                if self.count - applied(self.database) > BACKLOG:
                    time.sleep(0.02)
                    continue
                self.append()
        except BaseException as problem:  # pylint: disable=broad-except
            self.problem = repr(problem)

    def append(self):
        path = self.host.folder / "chunk.ndjson"
        with open(path, "w", encoding="utf-8") as out:
            for _ in range(CHUNK):
                key = f"K-{self.chance.randrange(KEYS)}"
                self.last[key] += 1
                out.write(json.dumps({
                    "id": str(uuid.UUID(int=self.chance.getrandbits(128), version=4)),
                    "aggregate_type": "hosts.thing", "aggregate_id": key,
                    "type": "hosts.Put", "payload": {"n": self.last[key]}}) + "\n")
        self.host.append(path)
        self.count += CHUNK


class Member:
    """One host of the cluster, its folder, and its process while it runs."""

    def __init__(self, name, program, applications, folder, database, url, workers,
                 clock):
        self.name = name
        self.clock = clock
        for application in applications:
            shutil.copytree(application, folder, dirs_exist_ok=True)
        for file, old, new in (
                ("moontide.conf.lua", "workers = 2", f"workers = {workers}"),
                ("ledger.sql", "${serial}", SERIAL[database.name])):
            path = folder / file
            path.write_text(path.read_text(encoding="utf-8").replace(old, new),
                            encoding="utf-8")
        self.host = Host(program, folder, database, url, clock.environment)
        self.version = 0
        self.process = None

    def start(self):
        self.process = self.host.start("run")

    @property
    def runs(self):
        return self.process is not None and self.process.poll() is None

    def workers(self):
        """Not the process that loads the scripts at a start, whose death ends it."""
        children = Tracked(self.process.pid).children() if self.runs else []
        return [pid for pid in children if is_worker(pid)]

    def save(self):
        """Writes the handler anew, as an editor does."""
        self.version += 1
        path = self.host.folder / "handlers/ledger.lua"
        text = path.read_text(encoding="utf-8")
        old = f"local VERSION = {self.version - 1} "
        if old not in text:
            fail(f"{path} has another version than {self.version - 1}")
        fresh = path.with_suffix(".new")
        fresh.write_text(text.replace(old, f"local VERSION = {self.version} "),
                         encoding="utf-8")
        os.replace(fresh, path)


class Campaign:
    """On one database."""

    application = ROOT / "scripts/faults.d/hosts"
    overlay = None # an application whose files come beside those

    def __init__(self, program, folder, database, chance):
        self.program, self.folder, self.database = program, folder, database
        self.chance = chance
        self.counts = collections.Counter()
        self.tries = collections.Counter()
        self.ended = collections.Counter()  # hosts that ended by themselves
        self.hits = collections.Counter()
        self.codes = collections.Counter()
        self.proxy = None
        self.stuck = None
        self.latest = 0  # of all shifts of clocks
        url = None
        self.on_file = database.name == "sqlite"
        if not self.on_file:
            self.proxy = proxies.Proxy(
                database.name, (database.at.hostname, database.at.port),
                seed=chance.getrandbits(32))
            url = database.at._replace(
                netloc=f"{database.at.username}@127.0.0.1:{self.proxy.port}",
                path="/" + database.name_there).geturl()
        workers = 1 if self.on_file else 2
        names = ("first", "second", "third")
        folder.mkdir(parents=True)
        library = clocks.build(folder)
        # who shares a file shares a machine and its clock
        self.clocks = [clocks.Clock(library, folder / f"{name}.clock")
                       for name in (names[:1] if self.on_file else names)]
        # the first reaches its server through the proxy, the others do not
        applications = [path for path in (self.application, self.overlay) if path]
        self.members = [Member(name, program, applications, folder / name, database,
                               url if name == "first" else None, workers,
                               self.clocks[at % len(self.clocks)])
                        for at, name in enumerate(names)]
        for clock in self.clocks[1:]:
            clock.step(int(chance.uniform(-9, 9) * 1e6))
        self.faults = dict(EVERYWHERE)
        if not self.on_file:
            self.faults.update(SERVERS)

    # --- looking ---------------------------------------------------------------------

    def progresses(self):
        """Something is applied by and by; otherwise this is the end."""
        before = applied(self.database)
        return comes_true(lambda: applied(self.database) > before or self.writer.problem,
                          PATIENCE)

    def somebody(self, direct=False):
        """A running host; `direct`: not the one behind the proxy."""
        running = [m for m in self.members[1 if direct and self.proxy else 0:] if m.runs]
        return self.chance.choice(running) if running else None

    # --- faults ----------------------------------------------------------------------

    def kill_in_hand(self, pid):
        """Stops the process, sees whether it has written and not committed, and
        kills it."""
        tracked = Tracked(pid)
        if not tracked.signal(signal.SIGSTOP):
            return False
        in_hand = self.database.in_hand(tracked)
        tracked.signal(signal.SIGKILL)
        return in_hand

    def kill_a_worker(self):
        member = self.somebody(direct=True)
        workers = member.workers() if member else []
        if not workers:
            return False
        pid = self.chance.choice(workers)
        if self.chance.random() < 0.5:  # mostly in a handler: they take long
            return Tracked(pid).signal(signal.SIGKILL)
        for _ in range(20):
            tracked = Tracked(pid)
            if not tracked.signal(signal.SIGSTOP):
                return False
            if self.database.in_hand(tracked):
                break
            tracked.signal(signal.SIGCONT)
            time.sleep(self.chance.uniform(0.001, 0.02))
        self.hits["kill between apply and commit"] += self.kill_in_hand(pid)
        return True

    def kill_a_host(self):
        member = self.somebody()
        if member is None:
            return False
        workers = [Tracked(pid) for pid in member.workers()]
        if not kill(member.process):
            return False
        if not comes_true(lambda: not any(w.lives() for w in workers), DEADLINE):
            self.hits["orphans that went on"] += 1
        time.sleep(self.chance.uniform(0, LEASE))
        member.start()
        return True

    def stopped(self, processes):
        processes = [p for p in processes if p.signal(signal.SIGSTOP)]
        time.sleep(self.chance.uniform(1, 2) * LEASE)
        for process in processes:
            process.signal(signal.SIGCONT)
        return bool(processes)

    def stop_a_worker(self):
        member = self.somebody()
        workers = member.workers() if member else []
        return bool(workers) and self.stopped([Tracked(self.chance.choice(workers))])

    def stop_a_host(self):
        member = self.somebody()
        if member is None:
            return False
        return self.stopped([Tracked(member.process.pid)]
                            + [Tracked(pid) for pid in member.workers()])

    def hold_a_lock(self):
        session = self.database.hold_writers("entries")
        time.sleep(self.chance.uniform(0.1, 1.5) * LEASE)
        session.close()
        return True

    def reload(self):
        member = self.somebody()
        if member is None:
            return False
        member.save()
        if self.chance.random() < 0.5:
            Tracked(member.process.pid).tell(signal.SIGHUP)
        return True

    def leave(self):
        member = self.somebody()
        if member is None:
            return False
        self.codes[end_well(member.process)] += 1
        time.sleep(self.chance.uniform(0, LEASE))
        member.start()
        return True

    def join(self):
        member = self.members[-1]
        if member.runs:
            return False
        member.start()
        time.sleep(self.chance.uniform(0.5, 3) * LEASE)
        self.codes[end_well(member.process)] += 1
        return True

    def end_a_session(self):
        member = self.somebody(direct=True)
        workers = member.workers() if member else []
        return bool(workers) and self.database.end_session(
            Tracked(self.chance.choice(workers)))

    def cut(self, when):
        member = self.members[0]
        if not member.runs:
            return False
        self.proxy.cut = cut = proxies.Cut(when)
        done = comes_true(lambda: cut.done, 10)
        self.hits[f"cut {when} COMMIT"] += done
        return done

    def cut_before_commit(self):
        return self.cut("before")

    def cut_after_commit(self):
        return self.cut("after")

    def leave_prepared(self):
        name = f"prepared-{self.counts['leave prepared']}"
        begin, prepare, commit, rollback = self.database.ends(name, True)
        session = self.database.open()
        rows = session.rows(f"{begin}; " + self.database.append_sql(
            "hosts.other", name, "other.Put", 2) + f"; {prepare}")
        time.sleep(self.chance.uniform(0.2, 2) * LEASE)
        session.rows(self.chance.choice([commit, rollback]))
        session.close()
        return rows is not None

    def step_a_clock(self, way):
        """By little or by much, not in the midst of what was begun by the old
        one where that is the database's."""
        clock = self.chance.choice(self.clocks)
        seconds = self.chance.choice([self.chance.uniform(0.1, 3), FAR])
        session = self.database.hold_writers("entries") if self.on_file else None
        clock.step(int(way * seconds * 1e6))
        self.latest = max(self.latest, clock.shift)
        if session is not None:
            session.close()
        return True

    def step_a_clock_forward(self):
        return self.step_a_clock(1)

    def step_a_clock_back(self):
        return self.step_a_clock(-1)

    def crash_the_server(self):
        self.database.crash()
        return True

    # --- the run ---------------------------------------------------------------------

    def one(self, kinds):
        kind = self.chance.choices(kinds, [self.faults[kind] for kind in kinds])[0]
        return kind, getattr(self, kind.lower().replace(" ", "_"))()

    def missing(self):
        """Kinds of which none came yet, or none that had an effect."""
        kinds = [kind for kind in self.faults if self.counts[kind] == 0]
        if not kinds and not (self.hits["kill between apply and commit"]
                              and self.most_attempts() > 1):
            kinds = ["kill a worker"]
        return kinds

    def most_attempts(self):
        return self.database.query("SELECT coalesce(max(attempt), 0) FROM entries")[0][0]

    def start(self):
        """What else begins with it."""

    def run(self, count):
        self.members[0].host.run("run", "--until-idle")  # makes the tables
        self.start()
        for member in self.members[:2]:
            member.start()
        self.writer = Writer(self.members[1].host,
                             random.Random(self.chance.getrandbits(64)))
        self.writer.start()
        if not self.progresses():
            fail(f"nothing is applied, see {self.folder}")
        while True:
            enough = sum(self.counts.values()) >= count
            kinds = self.missing() if enough else list(self.faults)
            if not kinds:
                break
            self.start_again()
            kind, happened = self.one(kinds)
            self.tries[kind] += 1
            if self.tries[kind] > TRIES * (1 + self.counts[kind]):
                self.stuck = f"'{kind}' never comes about"
                break
            self.counts[kind] += happened
            time.sleep(self.chance.uniform(*PAUSES))
            if happened and not self.progresses():
                self.stuck = f"after '{kind}' nothing was applied for {PATIENCE} s"
                break
            if self.writer.problem is not None:
                self.stuck = self.writer.problem
                break
            if sum(self.counts.values()) > count + 60:
                break
        self.settle()

    def start_again(self):
        """A host whose server goes away while it starts gives up."""
        for member in self.members[:2]:
            if not member.runs:
                code = member.process.poll()
                if code != UNAVAILABLE:
                    print(f"      {member.process.story(f'exit code {code}')}", flush=True)
                self.ended[code] += 1
                member.start()

    def settle(self):
        """No more faults: all that is there is applied."""
        if self.proxy:
            self.proxy.cut = None
        self.writer.end.set()
        self.writer.join(DEADLINE)
        for clock in self.clocks[:1] if self.on_file else []:
            clock.step(max(0, self.latest - clock.shift)) # all that was to come is due
        self.start_again()
        self.drained = self.is_drained()
        self.last_codes = [end_well(member.process) for member in self.members[:2]]
        if self.proxy:
            self.proxy.close()

    def is_drained(self):
        return comes_true(lambda: applied(self.database) >= self.writer.count,
                          DRAIN_DEADLINE)

    # --- the proof -------------------------------------------------------------------

    def judge(self, rule):
        counts = ", ".join(f"{n} {kind}" for kind, n in sorted(self.counts.items()))
        rule(f"{sum(self.counts.values())} faults, of every kind",
             not self.missing() and self.stuck is None,
             self.stuck or counts)
        hit = sum(n for kind, n in self.hits.items() if "COMMIT" in kind.upper())
        rule("some came between apply and commit", hit > 0
             and self.hits["kill between apply and commit"] > 0,
             ", ".join(f"{n} {kind}" for kind, n in self.hits.items()))
        rule("no worker outlives its host", self.hits["orphans that went on"] == 0)
        # one at a time writes to a file, and a slow machine lets some wait long
        permitted = {0, BUSY} if self.on_file else {0}
        rule("hosts that leave end well", set(self.codes) <= permitted
             and self.last_codes == [0, 0], f"{dict(self.codes)}, {self.last_codes}")
        rule("no host ends by itself, but at its start without a server",
             set(self.ended) <= {UNAVAILABLE}
             and (not self.ended or self.counts["crash the server"] > 0),
             str(dict(self.ended)))
        rule("all partitions drain after the faults", self.drained)
        self.judge_entries(rule)
        left = self.database.query(
            "SELECT (SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES),"
            " (SELECT count(*) FROM CONSUMER_SKIPPED_MESSAGES),"
            " (SELECT count(*) FROM PARTITION_INSTANCES),"
            " (SELECT count(*) FROM PARTITION_OWNERSHIP WHERE instance_id IS NOT NULL)")[0]
        rule("nothing is left undelivered or skipped", left[:2] == (0, 0), str(left[:2]))
        rule("after an orderly stop no lease is held", left[3] == 0, str(left[2:]))

    def judge_entries(self, rule):
        rows = self.database.query(
            "SELECT id, thing, n, position, attempt, version, partition_no,"
            f" instance_id, generation, {self.database.transaction_id} FROM entries"
            " ORDER BY id")
        wanted = {(key, n) for key, last in self.writer.last.items()
                  for n in range(1, last + 1)}
        found = collections.Counter((row[1], row[2]) for row in rows)
        lost = wanted - set(found)
        rule("every event is applied exactly once",
             not lost and set(found) == wanted and max(found.values()) == 1,
             f"{len(rows)} of {len(wanted)}, lost {sorted(lost)[:3]}, twice "
             f"{[row for row in rows if found[row[1], row[2]] > 1][:4]}")
        positions = {row[0] for row in self.database.query(
            "SELECT global_position FROM EVENT_STORE WHERE aggregate_type ="
            " 'hosts.thing'")}
        rule("no position is skipped", positions == {row[3] for row in rows})
        order, lease, mixed = [], [], []
        last, generations, owners, versions = {}, {}, {}, {}
        for row in rows:
            _, key, n, _, _, version, partition, instance, generation, transaction = row
            if n <= last.get(key, 0):
                order.append((key, last[key], n))
            last[key] = n
            if generation < generations.get(partition, 0):
                lease.append((partition, generations[partition], generation))
            generations[partition] = max(generation, generations.get(partition, 0))
            if owners.setdefault((partition, generation), instance) != instance:
                lease.append((partition, generation, instance))
            if isinstance(transaction, int):
                if versions.setdefault(transaction, version) != version:
                    mixed.append(transaction)
        rule("events of a key are applied in their order", not order, str(order[:3]))
        rule("nothing is committed under a lost lease", not lease, str(lease[:3]))
        rule("partitions changed hands", sum(generations.values()) > 2 * len(generations),
             f"{sum(generations.values())} times")
        instances = len({row[7] for row in rows})
        rule("several instances applied", instances > 3, str(instances))
        rule("no batch is applied by two versions of a script", not mixed, str(mixed[:3]))
        rule("saved scripts came into use",
             len({row[5] for row in rows}) > 1, str(len({row[5] for row in rows})))
        attempts = max(row[4] for row in rows)
        rule("a killed worker's message was tried again", attempts > 1,
             f"up to {attempts} attempts")
        self.judge_models(rule)

    def judge_models(self, rule):
        wrong = self.database.query(
            "SELECT read_model_id FROM things WHERE disorder <> 0")
        models = {key: (count, last) for key, count, last in self.database.query(
            "SELECT read_model_id, count, last FROM things")}
        rule("read models equal a serial run",
             not wrong and models == {key: (n, n) for key, n in self.writer.last.items()},
             str(wrong[:3]))


def run(rule, program, folder, database, chance, count):
    campaign = Campaign(program, pathlib.Path(folder), database, chance)
    campaign.run(count)
    campaign.judge(rule)
