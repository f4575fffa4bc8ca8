"""Writers of every kind beside a host that reads: slow ones, such that roll
back, prepared ones that nobody holds, and transactions that never append."""

import random
import threading
import time

from databases import DEADLINE, fail

WRITERS = 8
LONGEST_WAIT = 0.25  # seconds that a slow writer stays open
LONGEST_IDLE = 1.0

SHARES = {"quick": 5, "slow": 3, "rolled back": 3, "prepared": 2,
          "prepared and rolled back": 1}

LOOK = ("SELECT m.high_water_mark, (SELECT count(*) FROM EVENT_STORE AS e"
        " WHERE e.global_position <= m.high_water_mark), ({end})"
        " FROM HIGH_WATER_MARK_STORE AS m WHERE m.topic_name = 'event-store'")


class Worker(threading.Thread):
    """Does once() until stop is set; `problem` is why it could not."""

    def __init__(self, database, stop, seed):
        super().__init__(daemon=True)
        self.database, self.stop = database, stop
        self.chance = random.Random(seed)
        self.session = database.open()
        self.problem = None

    def run(self):
        while not self.stop.is_set() and self.problem is None:
            self.once()
        self.session.close()

    def once(self):
        raise NotImplementedError

    def sql(self, text):
        rows = self.session.rows(text)
        if rows is None and self.problem is None:
            self.problem = f"{text}: {self.session.why()}"
        return rows or []

    def wait(self, longest):
        time.sleep(self.chance.uniform(0.0, longest))


class Writer(Worker):
    """Appends to a stream of its own, and keeps what it committed."""

    def __init__(self, database, stop, seed):
        super().__init__(database, stop, seed)
        self.name = f"writer-{seed}"
        self.counts = dict.fromkeys(SHARES, 0)
        self.committed = set()
        self.overtaken = 0

    def once(self):
        kind = self.chance.choices(list(SHARES), list(SHARES.values()))[0]
        prepared = kind.startswith("prepared")
        keeps = not kind.endswith("rolled back")
        begin, prepare, commit, rollback = self.database.ends(self.name, prepared)
        appended = self.sql(f"{begin}; " + self.database.append_sql(
            "bank.account", self.name, "account.Deposited", self.chance.randint(1, 4)))
        if kind == "slow" or kind == "rolled back":
            self.wait(LONGEST_WAIT)
        if prepared:
            self.sql(prepare)
            self.wait(LONGEST_WAIT)
        self.sql(commit if keeps else rollback)
        if self.problem is not None:
            return
        self.counts[kind] += 1
        if keeps:
            self.committed.update(row[0] for row in appended)
            self.overtaken += self.sql(
                "SELECT count(*) FROM EVENT_STORE WHERE global_position >"
                f" {appended[-1][self.database.position]}") != [(0,)]


class Idler(Worker):
    """Opens transactions, one that writes elsewhere or one that only reads, and
    lets them lie. `open` counts up with each begin and each end."""

    def __init__(self, database, stop, seed):
        super().__init__(database, stop, seed)
        self.opened = 0

    def once(self):
        if self.chance.random() < 0.7:
            self.sql("BEGIN; INSERT INTO beside VALUES (1)")
        else:
            self.sql(f"{self.database.begin_reading}; SELECT count(*) FROM EVENT_STORE")
        self.opened += 1
        self.wait(LONGEST_IDLE)
        self.opened += 1
        self.sql(self.chance.choice(["COMMIT", "ROLLBACK"]))


class Watch:
    """What a reader sees: (mark, rows up to it), and where the end was."""

    def __init__(self, database):
        self.database = database
        self.looks = []
        self.held = 0         # the end was ahead of the mark
        self.beside_idle = 0  # the mark moved while one transaction lay idle

    def look(self, idler):
        lies = idler.opened
        mark, rows, end = self.database.query(LOOK.format(end=self.database.end))[0]
        moved = not self.looks or mark > self.looks[-1][0]
        if moved:
            self.beside_idle += lies % 2 == 1 and lies == self.lay and bool(self.looks)
            self.looks.append((mark, rows))
        self.lay = lies
        self.held += end > mark

    lay = 0

    def broken(self):
        """Looks after which something appeared up to the mark they saw."""
        return [(mark, rows) for mark, rows in self.looks
                if self.database.query("SELECT count(*) FROM EVENT_STORE"
                                       f" WHERE global_position <= {mark}") != [(rows,)]]

    def backwards(self):
        marks = [mark for mark, _ in self.looks]
        return marks != sorted(marks)


def has_come_about(database, writers, watch):
    """Whether there was all that the campaign is about."""
    kinds = all(sum(w.counts[kind] for w in writers) > 0 for kind in SHARES)
    late = not database.gaps or watch.held > 0 and any(w.overtaken > 0 for w in writers)
    return kinds and late and watch.beside_idle > 0


def load(database, seconds, chance):
    """(writers, watch) after so many seconds of it, at least."""
    database.query("CREATE TABLE beside (a INT)")
    stop = threading.Event()
    writers = [Writer(database, stop, chance.getrandbits(32)) for _ in range(WRITERS)]
    idlers = [Idler(database, stop, chance.getrandbits(32)) for _ in range(2)]
    watch = Watch(database)
    for worker in writers + idlers:
        worker.start()
    end = time.monotonic() + seconds
    limit = end + DEADLINE # a slow machine may need longer to see all of it
    while all(w.problem is None for w in writers + idlers):
        watch.look(idlers[0])
        now = time.monotonic()
        if now > limit or now > end and has_come_about(database, writers, watch):
            break
    stop.set()
    for worker in writers + idlers:
        worker.join()
        if worker.problem is not None:
            fail(worker.problem)
    return writers, watch
