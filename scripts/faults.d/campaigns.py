"""What the fault campaign does to hosts, writers, servers and connections."""

import atexit
import os
import pathlib
import signal
import subprocess
import time
import typing

from databases import DEADLINE, fail, wait_until
from processes import Tracked

EVENTS_PER_KILL = 2000

# One kill in so many comes at any moment, at most so many seconds after the
# start; one while a backend of the host runs a statement; and one at a host that
# finds its chunk appended. All but the first wait until the host is at work, so
# that they hit it on every machine.
KINDS = 4
ANY_MOMENT, MID_STATEMENT, BEHIND = 0, 1, 2
LONGEST_LIFE = 0.3

# ... and then for so many seconds at most.
LONGEST_WORK = 0.01

# Seconds until a run to idle has ended: what dead hosts had in hand is applied
# one message at a time.
DRAIN_DEADLINE = 5 * DEADLINE

SAID = 25 # lines that are shown of whoever failed

FAILED = 1  # exit code: a consumer is halted, say
UNAVAILABLE = 69  # exit code: the database cannot be used now
BUSY = 75  # exit code: somebody else has it for too long; try again


class Progress(typing.NamedTuple):
    lowest: int  # checkpoint of all
    total: int   # of all checkpoints: rises with each commit
    end: int     # position of the last event


class Process(subprocess.Popen):
    """The program, with a part of a log that is its own: the file may be out of
    reach of whoever reads that a campaign failed."""

    def __init__(self, command, path, environment):
        self.path = path
        with open(path, "ab") as log:
            self.begin = log.seek(0, os.SEEK_END)
            super().__init__(command, stdout=log, stderr=log, env=environment)

    def story(self, what):
        """What has become of it, and what it has said last."""
        with open(self.path, "rb") as log:
            log.seek(self.begin)
            said = log.read().decode("utf-8", "replace").splitlines()[-SAID:]
        return "\n".join([f"{' '.join(self.args)}: {what}; the end of {self.path}:",
                          *(f"      {line}" for line in said or ["(nothing)"])])

    def give_up(self, what):
        fail(self.story(what))

    def code(self, seconds=DEADLINE):
        """Its exit code; when it does not end, the campaign does."""
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.give_up(f"did not end within {seconds} s")


class Host:
    """The program with one application folder and one database."""

    def __init__(self, program, folder, database, url=None, environment=None):
        self.program, self.folder, self.database = program, folder, database
        self.url = url or database.url
        self.environment = environment

    def command(self, verb, *words):
        return [str(self.program), verb, "--quiet", "--config",
                str(self.folder / "moontide.conf.lua"), "--database", self.url,
                *map(str, words)]

    def start(self, verb, *words):
        process = Process(self.command(verb, *words), self.folder / f"{verb}.log",
                          self.environment)
        atexit.register(kill, process) # when a campaign is given up
        return process

    def run(self, verb, *words):
        """Runs to the end and expects success."""
        self.ends_well(self.start(verb, *words))

    def ends_well(self, process):
        code = process.code(DRAIN_DEADLINE)
        if code != 0:
            process.give_up(f"exit code {code}")

    def append(self, chunk):
        self.finish(self.start("append", "--batch", "100", chunk), chunk)

    def finish(self, writer, chunk):
        """Until the chunk is there: a writer whose database is away, or kept busy
        by others, gives up."""
        limit = time.monotonic() + DEADLINE
        while (code := writer.code()) != 0:
            if code not in (UNAVAILABLE, BUSY) or time.monotonic() > limit:
                writer.give_up(f"exit code {code}")
            writer = self.start("append", "--batch", "100", chunk)

    def query(self, sql):
        return self.database.query(sql)

    def progress(self):
        """What the checkpoints say, from one snapshot."""
        return Progress(*map(int, self.query(
            "SELECT (SELECT coalesce(min(coalesce(position, 0)), 0)"
            "          FROM CONSUMER_CHECKPOINTS),"
            "       (SELECT coalesce(sum(position), 0)"
            "          FROM CONSUMER_CHECKPOINTS),"
            "       (SELECT coalesce(max(global_position), 0)"
            "          FROM EVENT_STORE)")[0]))

    def is_done(self):
        progress = self.progress()
        return progress.lowest >= progress.end

    def is_marked(self):
        """Whether the mark is at the end: after a crash a sequence goes on
        behind positions that nobody had."""
        mark, end = self.query(
            "SELECT (SELECT high_water_mark FROM HIGH_WATER_MARK_STORE"
            f"  WHERE topic_name = 'event-store'), ({self.database.end})")[0]
        return mark == end


def workers(process):
    """The processes that it has started."""
    try:
        path = f"/proc/{process.pid}/task/{process.pid}/children"
        return pathlib.Path(path).read_text(encoding="ascii").split()
    except OSError:
        return []


def lives(pid):
    """Whether that process runs still; one that nobody has waited for does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def kill(process):
    """SIGKILL; false when the process had ended before it came. Its workers die
    with it, a little later."""
    if process.poll() is not None:
        return False
    process.send_signal(signal.SIGSTOP)  # it starts none meanwhile
    started = workers(process)
    process.send_signal(signal.SIGKILL)
    killed = process.wait(DEADLINE) == -signal.SIGKILL
    for pid in started: # one that was stopped before it was tied to the host
        Tracked(int(pid)).signal(signal.SIGCONT)
    wait_until(lambda: not any(map(lives, started)), "the workers are dead")
    return killed


# --- kills -----------------------------------------------------------------------


def kill_in_statement(host, runner, writer):
    """Kills the host while its backend runs a statement, and starts the next
    one at once: the old transaction may still end either way. Gives the new
    host, and whether it came in time."""
    holder = host.database.hold("ledger")
    try:
        wait_until(lambda: host.database.waiting("ledger") > 0 or
                   (writer.poll() is not None and host.is_done()),
                   "a host waits for the ledger")
        hit = kill(runner) and host.database.waiting("ledger") > 0
        return host.start("run"), hit
    finally:
        holder.close()


def await_work(host, runner, writer, before):
    """Until the host has committed a part of what there is, or all of it."""
    limit = time.monotonic() + DEADLINE
    while runner.poll() is None and time.monotonic() < limit:
        now = host.progress()
        if now.total > before.total and (now.lowest < now.end
                                         or writer.poll() is not None):
            return


def kill_campaign(host, chunks, chance):
    """Each chunk is appended while a host runs; the host is killed, and one
    writer in two is, too, and then appends its chunk again."""
    counts = {"mid-run": 0, "mid-statement": 0, "starting": 0, "idle": 0,
              "ended": 0, "writers": 0, "writers mid-file": 0}
    for number, chunk in enumerate(chunks):
        kind = number % KINDS
        before = host.progress()
        writer_life = (chance.uniform(0.0, LONGEST_LIFE / 2)
                       if chance.random() < 1 / 2 else None)
        runner = host.start("run") if kind != BEHIND else None
        writer = host.start("append", "--batch", "100", chunk)
        if writer_life is not None:
            time.sleep(writer_life)
            if kill(writer):
                counts["writers"] += 1
                kept = host.progress().end - before.end
                counts["writers mid-file"] += 0 < kept < EVENTS_PER_KILL
            writer = host.start("append", "--batch", "100", chunk)
        if kind == BEHIND:
            host.finish(writer, chunk)
            runner = host.start("run")
        if kind == MID_STATEMENT and hasattr(host.database, "hold"):
            runner, hit = kill_in_statement(host, runner, writer)
            counts["mid-statement"] += hit
        if kind == ANY_MOMENT:
            time.sleep(chance.uniform(0.005, LONGEST_LIFE))
        else:
            await_work(host, runner, writer, before)
            time.sleep(chance.uniform(0.0, LONGEST_WORK))
        hit = kill(runner)
        after = host.progress()
        if not hit:
            counts["ended"] += 1
        elif after.lowest >= after.end:
            counts["idle"] += 1
        elif after.total > before.total:
            counts["mid-run"] += 1
        else:
            counts["starting"] += 1
        host.finish(writer, chunk)
    host.run("run", "--until-idle")
    return counts


# --- two hosts -------------------------------------------------------------------


def stop_outside_of_transaction(host, process):
    """SIGSTOP, at a moment when the process holds no lock on the database."""
    limit = time.monotonic() + DEADLINE
    while time.monotonic() < limit:
        process.send_signal(signal.SIGSTOP)
        if host.database.is_quiet():
            return
        process.send_signal(signal.SIGCONT)
    fail("a host never lets go of the database")


def two_hosts(first, second, chunks):
    """Both run on one database while the events come in, until all is applied;
    gives their exit codes after SIGTERM."""
    runners = [first.start("run"), second.start("run")]
    for number, chunk in enumerate(chunks):
        # Each in turn has the first chunks alone, so that both certainly work
        # and wake up to checkpoints that the other one has moved.
        still = runners[number % 2] if number < 4 else None
        if still is not None:
            stop_outside_of_transaction(first, still)
        first.append(chunk)
        if still is not None:
            wait_until(first.is_done, "a host has applied what is there")
            still.send_signal(signal.SIGCONT)
    wait_until(lambda: first.is_done() or any(r.poll() is not None for r in runners),
               "two hosts have applied what is there")
    return [end_well(runner) for runner in runners]


def end_well(runner):
    """The exit code after SIGTERM."""
    Tracked(runner.pid).tell(signal.SIGTERM)
    code = runner.code()
    if code != 0:
        print(f"      {runner.story(f'exit code {code}')}", flush=True)
    return code


# --- servers and connections -----------------------------------------------------


def crash_campaign(host, chunks, crashes, chance):
    """One host lives through all of it: while it applies, its server ends as in
    a crash and comes back. Gives how often there was work left by then, and its
    exit code."""
    in_work = 0
    host.run("run", "--until-idle")
    runner = host.start("run")
    # a server that is away when a host first asks for it ends its start
    wait_until(lambda: host.query("SELECT count(instance_id) FROM"
                                  " PARTITION_OWNERSHIP")[0][0] > 0
               or runner.poll() is not None, "a host has begun")
    at = set(chance.sample(range(len(chunks)), crashes))
    for number, chunk in enumerate(chunks):
        # small batches: a fast machine is to be at work when its server ends
        writer = host.start("append", "--batch", "3", chunk)
        if number in at:
            time.sleep(chance.uniform(0.02, 0.15))
            host.database.crash()
            # a writer that has failed was at work, too
            in_work += writer.poll() != 0 or not host.is_done()
        if writer.wait(DEADLINE) != 0:
            host.append(chunk)
    wait_until(lambda: host.is_done() and host.is_marked()
               or runner.poll() is not None,
               "a host has applied what is there")
    return in_work, end_well(runner)


def cut_campaign(host, proxy, chunks, every):
    """One host and its writers reach the server through a proxy that cuts
    connections at random, the host's first one once it works. Gives the host's
    exit code."""
    runner = host.start("run")
    host.append(chunks[0])
    wait_until(lambda: host.is_done() or runner.poll() is not None,
               "a host has applied what is there")
    proxy.every = every
    proxy.cut_all()
    for chunk in chunks[1:]:
        host.append(chunk)
    wait_until(lambda: host.is_done() or runner.poll() is not None,
               "a host has applied what is there")
    proxy.every = 0
    return end_well(runner)
