"""The campaign of hosts.py with a topic of a read model that is compacted all the
time: hosts are killed amid it, one reader is left behind and another one is
rebuilt. In the end each has what the read model has, and nothing that was seen
committed ever went back."""

import pathlib
import signal
import threading
import time

import hosts
from campaigns import BUSY, DRAIN_DEADLINE, UNAVAILABLE
from databases import DEADLINE, ROOT, comes_true
from processes import Tracked

REFUSED = 3
SETTINGS = 'compaction = { schedule = "10ms" }, tombstones = { max_age = "100ms" },'

# What never goes back, in the order in which it is noted.
SEEN = {
    "compacted_through": "SELECT topic_name, compacted_through FROM TOPIC_COMPACTION",
    "mark": "SELECT topic_name, high_water_mark FROM HIGH_WATER_MARK_STORE",
    "generation": "SELECT CONCAT(consumer_type, ' ', consumer_name, ' ', partition_no),"
                  " generation FROM PARTITION_OWNERSHIP",
    "checkpoint": "SELECT CONCAT(c.consumer_name, ' ', k.source_name, ' ', k.partition_no),"
                  " k.position FROM CONSUMER_CHECKPOINTS AS k JOIN CONSUMERS AS c"
                  " ON c.id = k.consumer_id"
                  " WHERE k.position IS NOT NULL AND c.consumer_name <> 'rebuilt'",
}


class Watch(threading.Thread):
    """Notes the highest of each that was committed, and what came below it."""

    def __init__(self, database):
        super().__init__(daemon=True)
        self.database = database.again()
        self.end = threading.Event()
        self.highest, self.lower = {}, []
        self.moved = 0.0 # when compaction last came further
        self.looks = self.moves = 0

    def run(self):
        while not self.end.is_set():
            self.look()
            time.sleep(0.02)

    def look(self):
        for what, sql in SEEN.items():
            if self.database.name == "sqlite":
                sql = sql.replace("CONCAT(", "(").replace(", ' ', ", " || ' ' || ")
            for name, value in self.database.query(sql):
                before = self.highest.setdefault((what, name), value)
                if value < before:
                    self.lower.append((what, name, before, value))
                if value > before and what == "compacted_through":
                    self.moved = time.monotonic()
                    self.moves += 1
                self.highest[what, name] = max(before, value)
        self.looks += 1


class Campaign(hosts.Campaign):
    overlay = ROOT / "scripts/faults.d/compaction"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        for member in self.members:
            path = member.host.folder / "moontide.conf.lua"
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace("return {", "return { " + SETTINGS, 1),
                            encoding="utf-8")
        self.faults.update({"kill amid compaction": 8, "leave a reader behind": 4,
                            "rebuild a reader": 4})
        self.watch = None

    # --- faults ----------------------------------------------------------------------

    def kill_amid_compaction(self):
        """A supervisor that has written and not committed, while compaction comes
        on; where nobody can look into it, one that just came further."""
        member = self.somebody(direct=True)
        if member is None or not comes_true(
                lambda: time.monotonic() - self.watch.moved < 0.1, 5):
            return False
        tracked = Tracked(member.process.pid)
        workers = [Tracked(pid) for pid in member.workers()]
        for _ in range(100):
            if not tracked.signal(signal.SIGSTOP):
                return False
            if self.database.in_hand(tracked):
                self.hits["kill with a batch of it in hand"] += 1
                break
            tracked.signal(signal.SIGCONT)
            time.sleep(self.chance.uniform(0.001, 0.02))
        tracked.signal(signal.SIGKILL)
        member.process.wait(DEADLINE)
        if not comes_true(lambda: not any(w.lives() for w in workers), DEADLINE):
            self.hits["orphans that went on"] += 1
        member.start()
        return True

    def verb(self, *words):
        """False when it was refused, or its database was away."""
        process = self.members[1].host.start(*words)
        code = process.code()
        self.stuck = self.stuck or (None if code in (0, REFUSED, BUSY, UNAVAILABLE)
                                    else process.story(f"exit code {code}"))
        return code == 0

    def leave_a_reader_behind(self):
        if not self.verb("pause", "behind"):
            return False
        moves = self.watch.moves
        comes_true(lambda: self.watch.moves > moves + 3, 10)
        self.hits["compaction that passed a paused reader"] += self.watch.moves > moves
        return self.resumes()

    def resumes(self):
        return comes_true(lambda: self.verb("resume", "behind"), DEADLINE)

    def rebuild_a_reader(self):
        moves = self.watch.moves
        if not self.verb("rebuild", "rebuilt", "--restart"):
            return False
        comes_true(lambda: self.watch.moves > moves + 1, 5)
        self.hits["compaction beside a rebuild"] += self.watch.moves > moves
        return True

    def missing(self):
        kinds = super().missing()
        wanted = {"compaction that passed a paused reader": "leave a reader behind",
                  "compaction beside a rebuild": "rebuild a reader",
                  "kill with a batch of it in hand": "kill amid compaction"}
        return kinds or [kind for hit, kind in wanted.items() if not self.hits[hit]]

    # --- the proof -------------------------------------------------------------------

    def start(self):
        self.watch = Watch(self.database)
        self.watch.start()

    def models(self, name):
        return dict(self.database.query(f"SELECT read_model_id, last FROM {name}"))

    def is_drained(self):
        return (super().is_drained() and self.resumes() and comes_true(
            lambda: self.models("behind") == self.models("rebuilt") == self.models("models"),
            DRAIN_DEADLINE))

    def judge_models(self, rule):
        super().judge_models(rule)
        self.watch.end.set()
        self.watch.join(DEADLINE)
        self.members[0].host.run("run", "--until-idle")
        wanted = {key: last for key, last in self.writer.last.items() if last % 5}
        models = self.models("models")
        rule("the read model with the topic equals a serial run", models == wanted,
             f"{len(models)} of {len(wanted)}")
        for name in ("behind", "rebuilt"):
            found = self.models(name)
            wrong = {key for key in models.keys() | found.keys()
                     if models.get(key) != found.get(key)}
            rule(f"the reader '{name}' has what its source has", not wrong, str(sorted(wrong)[:3]))
        left = self.database.query("SELECT count(*) FROM READ_MODEL_CAPTURE_RECORDS")[0][0]
        rule("the topic was compacted", left < sum(self.writer.last.values()) / 2,
             f"{left} messages are left of {sum(self.writer.last.values())} changes,"
             f" compacted in {self.watch.moves} steps")
        rule("nothing that was committed goes back",
             not self.watch.lower and self.watch.looks > 100,
             f"{self.watch.looks} looks; {self.watch.lower[:3]}")


def run(rule, program, folder, database, chance, count):
    campaign = Campaign(program, pathlib.Path(folder), database, chance)
    campaign.run(count)
    campaign.judge(rule)
