"""A host that comes back when very many deadlines are due: it fires them in
batches and in their order, keeps its lease, and its memory stays as it was."""

import datetime
import json
import pathlib
import shutil
import time

from campaigns import Host, end_well
from databases import ROOT
from hosts import SERIAL

APPLICATION = ROOT / "scripts/faults.d/outage"
AWAY = 4 * 3600       # seconds
MOMENTS = 1000        # many are due at the same one
SECONDS = 1800        # in which all must fire
PAUSE = 0.2           # seconds between looks
GROWTH = 16 << 20     # bytes that the host's memory may grow by after a tenth


class Outage:
    def __init__(self, program, folder, database, chance, count):
        self.database, self.chance, self.count = database, chance, count
        shutil.copytree(APPLICATION, folder)
        path = folder / "fired.sql"
        path.write_text(path.read_text(encoding="utf-8").replace(
            "${serial}", SERIAL[database.name]), encoding="utf-8")
        self.host = Host(program, folder, database)
        self.looks = []  # (fired, bytes of memory)

    def set_all(self):
        """Each is due within the hour that follows the next one."""
        begin = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        path = self.host.folder / "events.ndjson"
        with open(path, "w", encoding="utf-8") as out:
            for number in range(self.count):
                due = begin + datetime.timedelta(
                    seconds=3.6 * self.chance.randrange(MOMENTS))
                out.write(json.dumps({
                    "aggregate_type": "outage.thing", "aggregate_id": f"L-{number}",
                    "type": "outage.Put",
                    "payload": {"due": due.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}) + "\n")
        self.host.run("append", path)
        self.host.run("run", "--until-idle")

    def come_back(self):
        path = self.host.folder / "moontide.conf.lua"
        path.write_text(path.read_text(encoding="utf-8").replace(
            '"0s"', f'"{AWAY}s"'), encoding="utf-8")
        process = self.host.start("run")
        limit = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < limit:
            self.look(process)
            if self.looks[-1][0] >= self.count:
                break
            time.sleep(PAUSE)
        self.generations = self.query(
            "SELECT min(generation), max(generation), count(instance_id)"
            " FROM PARTITION_OWNERSHIP WHERE consumer_type = 'saga'")
        self.code = end_well(process)

    def look(self, process):
        fired = self.query("SELECT count(*) FROM fired")[0][0]
        status = pathlib.Path(f"/proc/{process.pid}/status")
        try:
            lines = status.read_text(encoding="ascii").splitlines()
        except OSError:
            lines = []
        memory = [int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS")]
        self.looks.append((fired, memory[0] if memory else 0))

    def query(self, sql):
        return self.database.query(sql)

    def judge(self, rule, before):
        wanted = [row[0] for row in self.wanted]
        found = [row[0] for row in self.query("SELECT thing FROM fired ORDER BY id")]
        rule(f"{self.count} deadlines that are due after an outage fire once",
             len(found) == self.count and set(found) == set(wanted),
             f"{len(found)}, {len(set(found))} of them distinct")
        rule("... in the order of due times, then ids", found == wanted,
             str(next(((at, *pair) for at, pair in enumerate(zip(found, wanted))
                       if pair[0] != pair[1]), "")))
        steps = sorted({fired for fired, _ in self.looks} | {self.count})
        most = max(b - a for a, b in zip(steps, steps[1:])) if len(steps) > 1 else self.count
        rule("... in batches", len(steps) >= 4, f"{len(steps)} counts seen, {most} at most between")
        early = [memory for fired, memory in self.looks if memory and fired <= self.count / 10]
        late = [memory for _, memory in self.looks if memory]
        rule("... with the memory of a host that has little to do",
             bool(early) and max(late) - max(early) <= GROWTH,
             f"{max(early, default=0) >> 20} MB, later {max(late) >> 20} MB")
        low, high, held = self.generations[0]
        rule("... under leases that were never lost", low == high == before + 1 and held == 12,
             f"generation {low} to {high} after {before}, {held} held")
        left = self.query("SELECT (SELECT count(*) FROM SAGA_DEADLINES), (SELECT count(*) FROM"
                          " SAGA_INSTANCES)")[0]
        rule("... and none is left", left == (0, self.count), str(left))
        rule("the host ends well", self.code == 0, str(self.code))

    def run(self, rule):
        self.set_all()
        self.wanted = self.query("SELECT saga_id FROM SAGA_DEADLINES ORDER BY due_at, id")
        before = self.query("SELECT max(generation) FROM PARTITION_OWNERSHIP"
                            " WHERE consumer_type = 'saga'")[0][0]
        begin = time.monotonic()
        self.come_back()
        print(f"      fired in {time.monotonic() - begin:.0f} s", flush=True)
        self.judge(rule, before)


def run(rule, program, folder, database, chance, count):
    Outage(program, pathlib.Path(folder), database, chance, count).run(rule)
