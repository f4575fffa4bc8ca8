"""Kills at random moments of retries, replays and operator verbs, and what
must hold after each of them.

Messages fail a given number of times or for ever; a host applies them with
short delays; an operator does what he likes. After each kill, when the last
backend of the dead is gone, every message up to the checkpoint of its key must
be applied once, undelivered, or have been passed over by somebody who had the
right to."""

import collections
import json
import re
import shutil
import signal
import subprocess
import time

from campaigns import BUSY, DRAIN_DEADLINE, FAILED, Host, kill
from databases import DEADLINE, ROOT, comes_true, wait_until
from processes import Tracked
from delivery_judge import ATTEMPTS, CONSUMERS, KEYS, Judge, Look, Stream

APPLICATION = ROOT / "scripts/faults.d/delivery"
EVENTS_PER_STEP = 100
LEASE = 0.5  # seconds, as in the application's configuration
LONGEST_LIFE = 0.25  # seconds from the start of a host to its kill
# Seconds to wait for a moment to kill in, which comes unless chance has left
# nothing of its kind to do.
PATIENCE = 20
HELD_PATIENCE = 5  # seconds for a verb to come to the lock that is held
REPLAY_PATIENCE = 5  # seconds for a replay to come to its end
EXTRA_STEPS = 30  # at most, until each kind of kill was seen
HELD_SHARE = 0.35  # of the killed verbs: while they wait for a lock

KINDS = ("retry", "verb", "replay", "verb", "any")
PERMITTED = {0, 3}  # exit codes of verbs: done, refused
# ... where one at a time writes, and a slow machine lets some wait long
PERMITTED_ON_FILE = PERMITTED | {BUSY}

# Connections of dead clients: their transactions may still end either way.
OTHERS = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE datname ="
                " current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'",
    "mysql": "SELECT count(*) FROM information_schema.processlist"
             " WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}

class Verb:
    """A process of an operator, and what it may change."""

    def __init__(self, host, words, name=None, letter=None):
        self.host, self.words, self.name, self.letter = host, words, name, letter
        self.out = host.folder / "verb.json"
        self.before = time.monotonic()
        with open(self.out, "wb") as out, open(host.folder / "verb.log", "ab") as log:
            self.process = subprocess.Popen(
                host.command(words[0], "--json", *words[1:]), stdout=out, stderr=log)

    @property
    def title(self):
        return " ".join(self.words[:2] if self.words[0] == "dead-letters" else self.words[:1])

    def end(self):
        return self.process.wait(DEADLINE)

    def answer(self):
        return json.loads(self.out.read_text(encoding="utf-8"))


class Campaign:
    """On one database."""

    def __init__(self, program, folder, database, chance):
        self.chance, self.folder = chance, folder
        self.host = Host(program, self.application("failing"), database)
        self.mended = Host(program, self.application("mended", mended=True), database)
        self.stream = Stream(folder, chance)
        self.judge = Judge(self.stream)
        self.numbers = {}
        self.counts = collections.Counter()
        self.codes = collections.Counter()
        self.durations = collections.defaultdict(lambda: 0.05)
        self.longest = LONGEST_LIFE
        self.last = None
        self.killed = 0.0  # when a host was
        self.steps = 0

    def application(self, name, mended=False, passed=None):
        folder = self.folder / name
        shutil.copytree(APPLICATION, folder, dirs_exist_ok=True)
        path = folder / "handlers/delivery.lua"
        text = path.read_text(encoding="utf-8")
        if mended:
            text = text.replace("MENDED = false", "MENDED = true")
        for consumer, numbers in (passed or {}).items():
            text = text.replace(f"{consumer} = {{}}", f"{consumer} = {{ "
                                + "".join(f"[{n}] = true, " for n in sorted(numbers)) + "}")
        path.write_text(text, encoding="utf-8")
        return folder

    def alone(self):
        """Until no connection of the dead is left."""
        if self.host.database.name in OTHERS:
            others = OTHERS[self.host.database.name]
            wait_until(lambda: self.host.query(others) == [(0,)], "the dead are gone")

    def see(self, where):
        self.alone()
        time.sleep(max(0.0, self.killed + LEASE - time.monotonic()))
        self.last = Look(self.host, self.numbers)
        self.judge.look(self.last, where)
        return self.last

    # --- what the operator does ----------------------------------------------------

    def rebuild(self, name=None):
        name = name or self.chance.choice(CONSUMERS)
        return Verb(self.host, ["rebuild", name, *(["--restart"] * self.chance.randint(0, 1))],
                    name)

    def rebuild_key(self):
        key = f"K-{self.chance.randrange(KEYS)}"
        self.judge.mended_keys.add(key)
        for message in self.stream.messages:
            if message.key == key:
                self.judge.deleted["states"].discard(message.n)
        return Verb(self.mended, ["rebuild", "states", "--key", key], "states")

    def past(self, name):
        self.judge.past.add(name)
        return Verb(self.host, ["resume", "--past", name], name)

    def letter(self, word):
        dead = self.last.dead()
        if not dead:
            return self.rebuild_key()
        row = self.chance.choice(dead)
        if word == "delete":
            self.judge.named[row.name].add(row.n)
        return Verb(self.host, ["dead-letters", word, str(row.position), "--consumer",
                                row.name], row.name, row)

    def verb(self):
        """Any, but more often one that helps."""
        for name, (state, _, _) in self.last.states.items():
            if state == "PAUSED" and self.chance.random() < 0.7:
                return Verb(self.host, ["resume", name], name)
            if state == "HALTED" and self.chance.random() < 0.5:
                return self.past(name)
        name = self.chance.choice(CONSUMERS)
        return self.chance.choice([
            lambda: Verb(self.host, ["pause", name], name),
            lambda: Verb(self.host, ["resume", name], name),
            lambda: Verb(self.host, ["dead-letters", "retry", "--all"]),
            lambda: Verb(self.host, ["dead-letters", "retry", "--consumer", name]),
            lambda: self.letter("retry"), lambda: self.letter("retry"),
            lambda: self.letter("delete"), lambda: self.letter("delete"),
            self.rebuild, self.rebuild_key, self.rebuild_key,
        ])()

    def killed_verb(self, verb, runner):
        """Gives whether it was there to be killed."""
        table = None
        if hasattr(self.host.database, "hold") and self.chance.random() < HELD_SHARE:
            # the reset of the rows is the second transaction of a rebuild
            table = "notes" if verb.words[:2] == ["rebuild", "notes"] else "CONSUMER_CHECKPOINTS"
        if table is None:
            time.sleep(self.chance.uniform(0.0, 1.2 * self.durations[verb.title]))
            return kill(verb.process)
        holder = self.host.database.hold(table)
        try:
            comes_true(lambda: self.host.database.waiting(table) > 0
                       or verb.process.poll() is not None, HELD_PATIENCE)
            hit = kill(verb.process)
            self.counts["verbs held"] += hit
            if self.chance.random() < 1 / 2: # before anything moves on
                self.kill_host(runner)
            return hit
        finally:
            holder.close()

    def ended_verb(self, verb):
        code = verb.end()
        took = time.monotonic() - verb.before
        self.durations[verb.title] += (took - self.durations[verb.title]) / 4
        self.codes[code] += 1
        self.counts[f"{verb.title}: {code}"] += 1
        return code

    # --- a step ----------------------------------------------------------------------

    def attempts(self, log, start):
        """(consumer, number, attempt) of the calls since the byte `start`."""
        with open(log, "rb") as file:
            file.seek(start)
            text = file.read().decode("utf-8", "replace")
        calls = []
        for line in text.splitlines():
            if "attempt" not in line:
                continue
            found = {word: re.search(rf'\b{word}="?([\w-]+)', line)
                     for word in ("consumer", "n", "attempt")}
            if all(found.values()):
                calls.append((found["consumer"][1], int(found["n"][1]),
                              int(found["attempt"][1])))
        return calls

    def step(self, kind):
        """A host, some messages, maybe a verb; then the kill, and a look."""
        self.steps += 1
        chance = self.chance
        if kind == "replay" and not self.last.replaying:
            self.ended_verb(self.rebuild())
        log = self.host.folder / "run.log"
        start = log.stat().st_size if log.exists() else 0
        runner = self.host.start("run")
        chunk = self.stream.more(EVENTS_PER_STEP)
        writer = self.host.start("append", "--batch", "20", chunk)
        verb, verb_killed = None, False
        if kind in ("retry", "any") and self.last.replaying:
            self.live_on(runner)
        if kind == "retry":
            self.stop_in_retry(runner, writer, log, start)
        elif kind == "verb" or kind == "any" and chance.random() < 0.6:
            time.sleep(chance.uniform(0.0, self.longest))
            verb = self.verb()
            if kind == "verb" or chance.random() < 0.5:
                verb_killed = self.killed_verb(verb, runner)
            if chance.random() < 0.5:
                self.judge_verb(verb, verb_killed)
                verb = None
                time.sleep(chance.uniform(0.0, self.longest / 2))
        elif kind == "replay":
            self.await_replay()
            time.sleep(chance.uniform(0.0, 0.01))
        else:
            time.sleep(chance.uniform(0.02, self.longest))
        self.kill_host(runner)
        calls = self.attempts(log, start)
        before = self.last
        if verb is not None:
            self.judge_verb(verb, verb_killed)
        self.host.finish(writer, chunk)
        look = self.see(f"step {self.steps} ({kind}"
                        + (f", {' '.join(self.words)})" if self.words else ")"))
        self.count(kind, calls, before, look)
        self.words = None

    words = None

    def kill_host(self, runner):
        workers = [Tracked(pid) for pid in Tracked(runner.pid).children()]
        self.judge.in_hand += max(1, len(workers))
        hit = kill(runner)
        # they go with it, and their transactions
        wait_until(lambda: not any(w.lives() for w in workers), "the workers are gone")
        self.killed = time.monotonic()
        if not hit and runner.returncode != -signal.SIGKILL:
            self.judge.wrong.append(f"step {self.steps}: the host ended by itself with "
                                    f"{runner.returncode}")

    def stop_in_retry(self, runner, writer, log, start):
        """Leaves the host stopped in one, unless nothing comes that could be
        tried again. An attempt is short, and a slow machine looks too late."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit and runner.poll() is None:
            if writer.poll() is not None and not self.has_work():
                return
            if not any(attempt > 1 for _, _, attempt in self.attempts(log, start)):
                time.sleep(0.001)
                continue
            host = [Tracked(pid) for pid in (runner.pid, *Tracked(runner.pid).children())]
            began = time.monotonic()
            for process in host:
                process.signal(signal.SIGSTOP)
            if self.is_in_retry(self.attempts(log, start)):
                return
            for process in host:
                process.signal(signal.SIGCONT)
            # one of its workers may have found another dead, and what that one
            # had in hand an attempt poorer
            if time.monotonic() - began > LEASE / 2:
                self.judge.in_hand += len(host) - 1
            time.sleep(self.chance.uniform(0.0, 0.01))

    def has_work(self):
        """Whether a consumer that runs has something to apply, or to try again."""
        behind, waiting = self.host.query(
            "SELECT (SELECT count(*) FROM CONSUMER_CHECKPOINTS AS k"
            " JOIN CONSUMERS AS c ON c.id = k.consumer_id WHERE c.state IS NULL AND"
            " coalesce(k.position, 0) < (SELECT max(global_position) FROM EVENT_STORE)),"
            " (SELECT count(*) FROM CONSUMER_UNDELIVERED_MESSAGES AS u"
            " JOIN CONSUMERS AS c ON c.id = u.consumer_id WHERE c.state IS NULL"
            " AND u.status NOT IN ('DEAD_LETTER', 'DEAD_LETTER_KEY', 'HALTED'))")[0]
        return behind + waiting > 0

    def is_in_retry(self, calls):
        """Whether nothing is stored yet of the attempt that was begun last."""
        name, n, attempt = calls[-1]
        rows = self.host.query(
            "SELECT c.consumer_name, e.payload, u.failure_count,"
            " CASE WHEN u.failure_reason LIKE '%ended without a word%' THEN 1 ELSE 0 END"
            " FROM CONSUMER_UNDELIVERED_MESSAGES AS u"
            " JOIN CONSUMERS AS c ON c.id = u.consumer_id"
            " JOIN EVENT_STORE AS e ON e.global_position = u.message_position")
        return attempt > 1 and any(
            mine == name and json.loads(payload)["n"] == n
            and failures == (attempt if counted == 1 else attempt - 1)
            for mine, payload, failures, counted in rows)

    def await_replay(self):
        """Until one has come further than at the last look, or none goes on."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            going = {name: (state, reach) for name, state, reach, through in self.host.query(
                "SELECT c.consumer_name, coalesce(c.state, 'RUNNING'),"
                " sum(coalesce(k.position, 0)), max(coalesce(k.replay_through, 0))"
                " FROM CONSUMER_CHECKPOINTS AS k JOIN CONSUMERS AS c ON c.id = k.consumer_id"
                " GROUP BY c.consumer_name, c.state")
                if state == "REBUILDING" or state == "RUNNING" and through > 0}
            moved = [name for name, (state, reach) in going.items() if state == "RUNNING"
                     and reach > (self.last.reach(name) if name in self.last.replaying else 0)]
            if moved or not going:
                return

    def live_on(self, runner):
        """Until no replay goes on, or the host cannot come to its end."""
        over = comes_true(
            lambda: runner.poll() is not None or self.host.query(
                "SELECT count(*) FROM CONSUMER_CHECKPOINTS AS k JOIN CONSUMERS AS c"
                " ON c.id = k.consumer_id WHERE k.replay_through IS NOT NULL"
                " AND c.state IS NULL") == [(0,)], REPLAY_PATIENCE)
        self.counts["replays over"] += over

    def judge_verb(self, verb, killed):
        self.words = verb.words
        if killed:
            self.counts["verbs killed"] += 1
            self.counts[f"{verb.title}: killed"] += 1
            return
        code = self.ended_verb(verb)
        if code == 0 and verb.letter is not None and verb.words[1] == "delete":
            if verb.answer()["deleted"] > 0:
                self.judge.deleted[verb.name].add(verb.letter.n)

    def count(self, kind, calls, before, look):
        """What the kill fell into, by what is there after it."""
        rows = {(row.name, row.n): row for row in look.rows}
        # the last attempts that were begun, and of which nothing is stored
        if calls:
            name, n, attempt = calls[-1]
            row = rows.get((name, n))
            # one that was counted before it was made
            counted = row is not None and row.counted and row.failures == attempt
            if attempt > 1 and row is not None and (counted or row.failures == attempt - 1):
                self.counts["retry"] += 1
        # in the middle: it had begun, or went on, and has more to do
        self.counts["replay"] += any(
            name in look.replaying and look.reach(name) > 0
            and (name not in before.replaying or look.reach(name) > before.reach(name))
            for name in CONSUMERS)
        if any(state == "REBUILDING" for state, _, _ in look.states.values()):
            self.counts["asked and not reset"] += 1
        moved = sum(look.reached.values()) != sum(before.reached.values())
        self.longest *= 0.98 if moved else 1.05
        self.counts["kills"] += 1
        self.counts[f"{kind} steps"] += 1

    # --- the whole -------------------------------------------------------------------

    def run(self, kills):
        self.host.run("run", "--until-idle")
        self.see("start")
        for number in range(kills):
            self.step(KINDS[number % len(KINDS)])
        for kind, count in (("retry", "retry"), ("verb", "verbs killed"),
                            ("replay", "replay")):
            for _ in range(EXTRA_STEPS):
                if self.counts[count] > 0:
                    break
                self.step(kind)

    def first_run(self):
        """What was killed in the last attempt of its budget is not tried again,
        by no handlers: its policy may halt the consumer, which fails this run
        and gives the next one a fresh budget."""
        halts = any(row.status == "FAILED" and row.failures >= ATTEMPTS
                    and self.stream.messages[row.n - 1].policy == "halt"
                    for row in self.last.rows)
        process = self.mended.start("run", "--until-idle")
        if process.code(DRAIN_DEADLINE) not in ((0, FAILED) if halts else (0,)):
            process.give_up(f"exit code {process.returncode}")

    def mend(self):
        """Handlers that do not fail any more, and an operator who helps."""
        for name in CONSUMERS:
            if self.last.states[name][0] == "PAUSED":
                self.mended.run("resume", name)
        self.first_run()
        self.mended.run("run", "--until-idle")
        self.mended.run("dead-letters", "retry", "--all")
        self.mended.run("run", "--until-idle")
        # skips go when every partition has passed them
        self.mended.append(self.stream.more(4 * KEYS, healthy=True))
        self.mended.run("run", "--until-idle")
        self.alone()
        return Look(self.host, self.numbers)

    def final_models(self, look):
        """{consumer: {key: numbers in order}}"""
        return {name: {key: [n for n, _ in applied]
                       for key, applied in look.applied[name].items() if applied}
                for name in CONSUMERS}

    def missing(self, models):
        return {name: {message.n for message in self.stream.messages}
                - {n for numbers in models[name].values() for n in numbers}
                for name in CONSUMERS}

    def serial(self, database, passed):
        """The same messages by one host without a failure."""
        host = Host(self.host.program, self.application("serial", True, passed), database)
        for path in sorted(self.folder.glob("from-*.ndjson"),
                           key=lambda path: int(path.stem.split("-")[1])):
            host.run("append", path)
        host.run("run", "--until-idle")
        return self.final_models(Look(host, {}))


def same(stream, mine, other):
    """The keys whose read models differ. Where an operator has tried a
    DEAD_LETTER again the order is his."""
    differs = []
    for name in CONSUMERS:
        for key in set(mine[name]) | set(other[name]):
            here, there = mine[name].get(key, []), other[name].get(key, [])
            if any(stream.dies(name, n) == "dead_letter" for n in here):
                here, there = sorted(here), sorted(there)
            if here != there:
                differs.append(f"{name} {key}")
    return differs


def run(rule, program, folder, make, chance, kills):
    """`make(name)` gives a new database, `rule(name, good, detail)` takes what
    was found."""
    database = make("delivery")
    campaign = Campaign(program, folder, database, chance)
    campaign.run(kills)
    counts, judge = campaign.counts, campaign.judge
    rule("kills fell into retries, verbs and replays",
         min(counts["retry"], counts["verbs killed"], counts["replay"]) > 0,
         f"{counts['kills']} kills of the host: {counts['retry']} in a retry,"
         f" {counts['replay']} in a replay ({counts['replays over']} came to an end),"
         f" {counts['asked and not reset']} before a reset;"
         f" and {counts['verbs killed']} of verbs, {counts['verbs held']} of these in a"
         " statement")
    rule("verbs that live end well", set(campaign.codes)
         <= (PERMITTED_ON_FILE if database.name == "sqlite" else PERMITTED),
         ", ".join(f"{what}: {count}" for what, count in sorted(counts.items())
                   if ": " in what))
    for line in judge.wrong[:20]:
        print(f"      {line}", flush=True)
    rule("after each kill all is applied once in order, undelivered or passed over",
         not judge.wrong, f"{len(judge.wrong)} wrong" if judge.wrong
         else f"{campaign.steps} looks")

    look = campaign.mend()
    states = {name: state for name, (state, _, _) in look.states.items()}
    rule("once mended nothing is left undelivered, skipped or replaying",
         not look.rows and look.skips == 0 and not look.replaying
         and set(states.values()) == {"RUNNING"},
         f"{len(look.rows)} undelivered, {look.skips} skips, {states}")
    models = campaign.final_models(look)
    missing = campaign.missing(models)
    lost = {name: sorted(n for n in numbers if not judge.may_miss(name, n))
            for name, numbers in missing.items()}
    kept = {name: sorted(judge.deleted[name] - missing[name]) for name in CONSUMERS}
    rule("what is missing was skipped by its policy or deleted, and what was deleted is"
         " missing", not any(lost.values()) and not any(kept.values()),
         f"lost {lost}, kept {kept}" if any(lost.values()) or any(kept.values()) else
         ", ".join(f"{name} {len(numbers)} of {len(campaign.stream.messages)}"
                   for name, numbers in missing.items()))
    del judge.wrong[:]
    epochs = judge.journal(campaign.host.query("SELECT model_key, n FROM journal ORDER BY id"))
    rule("each key was applied in order and once in each epoch",
         not judge.wrong and epochs == look.states["notes"][2],
         "; ".join(judge.wrong[:5]) or f"{epochs} resets of the rows, "
         f"{look.states['states'][2]} of the states")
    differs = same(campaign.stream, models, campaign.serial(make("serial"), missing))
    rule("the read models are those of a serial run without failures", not differs,
         ", ".join(differs[:10]) or f"{sum(map(len, models.values()))} read models")
