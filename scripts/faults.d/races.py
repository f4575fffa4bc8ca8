"""Waves of sagas whose answer comes at about the time at which the deadline for
it is due, which end and begin anew under the same ids while completed ones are
deleted, and of sagas whose rows somebody deletes by hand, so that they leave
deadlines behind. The notes of their handlers (sagas/handlers/race.lua) are
judged."""

import collections
import datetime
import json
import sqlite3
import threading
import time
import uuid

from campaigns import BUSY, UNAVAILABLE, Host, end_well
from databases import DEADLINE, comes_true

IDS = 40          # two of them tell one message
WAIT = 0.8        # seconds from the start of a wave until its deadlines are due
SPREAD = (-0.06, 0.12)  # seconds around that in which answers come
GROUPS = 8        # answers come in so many appends
ANSWERED = 0.85   # the others stay without one
DELETED = 12      # sagas that are deleted by hand, each time
LEFT = 6          # seconds from their start until what they leave behind is due
LATER = 1.5       # ... and until those that take their ids end

MET_LEFT = "deadlines of sagas deleted by hand that met others"

# Old enough for retention, whatever sagas.keep says.
AGE = ("UPDATE SAGA_INSTANCES SET completed_at = '2001-01-01 00:00:00'"
       " WHERE saga_type = 'race' AND completed_at IS NOT NULL")

DELETE = "DELETE FROM SAGA_INSTANCES WHERE saga_id IN ({}) AND completed_at IS NULL"
KEPT = "SELECT saga_id FROM SAGA_INSTANCES WHERE saga_id IN ({})"
REMINDERS = ("SELECT d.saga_id FROM SAGA_DEADLINES AS d LEFT JOIN SAGA_INSTANCES AS i"
             " ON i.id = d.instance_id"
             " WHERE d.saga_id IN ({}) AND d.name = 'reminder' AND i.id IS NULL")


def moment(us):
    return datetime.datetime.fromtimestamp(us / 1e6, datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%S.%fZ")


class Races:
    """Of one campaign."""

    def __init__(self, campaign):
        self.campaign, self.chance = campaign, campaign.chance
        self.database = campaign.database
        second = campaign.members[1]
        self.clock = campaign.clocks[0] if campaign.on_file else None
        self.writer = Host(second.host.program, second.host.folder, self.database, None,
                           self.clock.environment if self.clock else None)
        self.waves = 0
        self.stored = {}  # (id, round): when its answer was there for certain
        self.deleted = {} # (id, round of the next instance): round of the deleted
        self.left = {}    # ... and when what that left behind was due

    def now(self):
        """The database's clock: servers have the machine's."""
        return self.clock.now() if self.clock else time.time_ns() // 1000

    def write(self, sql):
        if not self.campaign.on_file:
            self.database.query(sql)
            return
        connection = sqlite3.connect(self.database.path, timeout=DEADLINE)
        with connection:
            connection.execute(sql)
        connection.close()

    def event(self, key, kind, **payload):
        return json.dumps({
            "id": str(uuid.UUID(int=self.chance.getrandbits(128), version=4)),
            "aggregate_type": "hosts.race", "aggregate_id": key, "type": kind,
            "payload": {"round": self.waves, **payload}})

    def file(self, name, events):
        path = self.writer.folder / f"{name}.ndjson"
        path.write_text("\n".join(events) + "\n", encoding="utf-8")
        return path

    def append_all(self, paths):
        """At the same time; those whose database goes away meanwhile go on."""
        running = {path: self.writer.start("append", path) for path in paths}
        for path, process in running.items():
            self.finish(path, process)

    def finish(self, path, process):
        limit = time.monotonic() + DEADLINE
        while (code := process.code()) != 0:
            if code not in (UNAVAILABLE, BUSY) or time.monotonic() > limit:
                process.give_up(f"exit code {code}")
            process = self.writer.start("append", path)

    def started(self, key, due_us, **more):
        pair = f"P-{int(key[2:]) // 2}"
        return self.event(key, "race.Started", pair=pair, due_us=due_us,
                          due=moment(due_us), **more,
                          message=str(uuid.uuid5(uuid.NAMESPACE_OID,
                                                 f"{pair}/{self.waves}")))

    def start_wave(self):
        """Each id is begun twice at the same time."""
        due_us = self.now() + int(WAIT * 1e6)
        keys = [f"R-{n}" for n in range(IDS)]
        self.append_all([self.file(f"starts-{n}",
                                   [self.started(key, due_us) for key in keys])
                         for n in (1, 2)])
        return keys, due_us

    def answer(self, keys, due_us):
        answered = [key for key in keys if self.chance.random() < ANSWERED]
        threads = []
        for number in range(GROUPS):
            group = answered[number::GROUPS]
            path = self.file(f"answers-{number}",
                             [self.event(key, "race.Answered") for key in group])
            at = due_us + int(self.chance.uniform(*SPREAD) * 1e6)
            threads.append(threading.Thread(target=self.answer_at,
                                            args=(at, path, group, self.waves),
                                            daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)

    def answer_at(self, at, path, group, wave):
        time.sleep(max(0, at - self.now()) / 1e6)
        self.finish(path, self.writer.start("append", path))
        for key in group:
            self.stored[key, wave] = self.now()

    def once(self):
        """Two waves; what the first has completed is deleted by a host that
        starts, while the second begins the same ids anew."""
        for second in (False, True):
            self.waves += 1
            sweeper = self.campaign.members[-1]
            if second:
                self.write(AGE)
                sweeper.start()
            self.answer(*self.start_wave())
            if second:
                self.campaign.codes[end_well(sweeper.process)] += 1
        return True

    def delete_by_hand(self):
        """Sagas whose rows go, and their deadlines do not: others begin under the
        same ids, and are there when those come due."""
        keys = [f"X-{self.waves * DELETED + n}" for n in range(DELETED)]
        listed = ", ".join(f"'{key}'" for key in keys)
        left_us = self.now() + int(LEFT * 1e6)
        self.begin(keys, left_us, reminder=moment(left_us))
        self.write(DELETE.format(listed))
        kept = {row[0] for row in self.database.query(KEPT.format(listed))}
        gone = [key for key in keys if key not in kept] # the others had ended
        for key in gone:
            self.deleted[key, self.waves + 1] = self.waves
        for key, in self.database.query(REMINDERS.format(listed)):
            self.left[key, self.waves + 1] = left_us
        self.begin(gone, left_us)
        return bool(gone)

    def begin(self, keys, left_us, **more):
        self.waves += 1
        due_us = left_us + int(LATER * 1e6)
        if keys:
            path = self.file("deleted", [self.started(key, due_us, **more) for key in keys])
            self.finish(path, self.writer.start("append", path))
        if not comes_true(lambda: self.count_started() >= len(keys), DEADLINE):
            fail(f"wave {self.waves} does not begin, see {self.writer.folder}")

    def count_started(self):
        return self.database.query("SELECT count(*) FROM races WHERE what = 'started'"
                                   f" AND round = {self.waves}")[0][0]

    # --- the proof -------------------------------------------------------------------

    def notes(self):
        return self.database.query("SELECT thing, what, round, of_round, due_us, noted_us"
                                   " FROM races ORDER BY id")

    def met(self):
        """How often what this is about came about."""
        met = collections.Counter()
        rounds = collections.defaultdict(set)
        for thing, what, round_, _, due, noted in self.notes():
            met["answers that came to a deadline that was due"] += (
                what == "answered" and noted >= due)
            met["deadlines that fired while the answer was there"] += (
                what == "silent" and self.stored.get((thing, round_), noted + 1) <= noted)
            met["sagas begun twice"] += what == "started again"
            if what == "started":
                met[MET_LEFT] += (
                    noted < self.left.get((thing, round_), 0))
                met["ids begun anew"] += bool(rounds[thing])
                rounds[thing].add(round_)
        return met

    def missing(self):
        """The faults that bring about what was not met yet."""
        met = self.met()
        if not met[MET_LEFT]:
            return ["delete sagas by hand"]
        return [] if len(met) == 5 and min(met.values()) > 0 else ["race answers"]

    def is_over(self):
        return comes_true(lambda: self.database.query(
            "SELECT count(*) FROM SAGA_INSTANCES WHERE saga_type = 'race'"
            " AND completed_at IS NULL")[0][0] == 0, DEADLINE)

    def judge(self, rule):
        notes = self.notes()
        met = self.met()
        rule("answers met their deadlines, and ids began anew", not self.missing(),
             ", ".join(f"{n} {what}" for what, n in met.items()))
        wrong, early, open_ = [], [], {}
        for note in notes:
            thing, what, round_, of_round, due, noted = note
            if what == "started":
                before = self.deleted.get((thing, of_round))
                wrong += [note] if open_.get(thing, before) != before else []
                open_[thing] = of_round
            elif open_.get(thing) != of_round:
                wrong.append(note)
            if what in ("answered", "silent", "reminded"):
                wrong += [note] if round_ != of_round else []
            if what in ("answered", "silent"):
                open_.pop(thing, None)
            if what == "silent" and noted < due - 2000: # clocks are asked now and then
                early.append((note, due - noted))
        rule("each instance ends once, by its own answer or deadline", not wrong and not open_,
             f"{sum(note[1] == 'started' for note in notes)} instances; "
             f"{wrong[:2]}, {list(open_)[:3]}")
        rule("no deadline fires before it is due", not early, str(early[:2]))
        rounds = {(note[0], note[2]) for note in notes if note[1].startswith("started")}
        staged = self.database.query("SELECT event_id, count(*) FROM OUTBOX GROUP BY event_id")
        told = {str(uuid.uuid5(uuid.NAMESPACE_OID, f"P-{int(key[2:]) // 2}/{round_}"))
                for key, round_ in rounds}
        rule("what two hosts stage under one id is there once",
             {row[0] for row in staged} == told and all(n == 1 for _, n in staged),
             f"{len(staged)} of {len(told)} for {len(rounds)} sagas")
