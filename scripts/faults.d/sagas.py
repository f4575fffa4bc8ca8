"""The campaign of hosts.py with sagas in the place of projections: each key is a
saga, and what it has caused is judged, too. Beside them run the sagas of
races.py."""

import collections
import json
import pathlib

import hosts
import races
from campaigns import DRAIN_DEADLINE
from databases import ROOT, comes_true


class Campaign(hosts.Campaign):
    application = ROOT / "scripts/faults.d/sagas"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.faults.update({"race answers": 6, "delete sagas by hand": 3})
        self.races = races.Races(self)

    def race_answers(self):
        return self.races.once()

    def delete_sagas_by_hand(self):
        return self.races.delete_by_hand()

    def missing(self):
        return super().missing() or self.races.missing()

    def is_drained(self):
        """Applied, and no deadline waits: each is due at once."""
        return super().is_drained() and comes_true(
            lambda: self.database.query("SELECT count(*) FROM SAGA_DEADLINES")[0][0] == 0,
            DRAIN_DEADLINE) and self.races.is_over()

    def captured(self, event_type):
        rows = self.database.query(
            "SELECT message_key, payload FROM EVENT_CAPTURE_RECORDS WHERE event_type ="
            f" '{event_type}'")
        return collections.Counter((key, json.loads(payload)["n"])
                                   for key, payload in rows)

    def judge_models(self, rule):
        last = self.writer.last
        rows = self.database.query("SELECT saga_id, state_json, completed_at"
                                   " FROM SAGA_INSTANCES WHERE saga_type = 'ledger'")
        states = {key: json.loads(state) for key, state, _ in rows}
        rule("each id has one saga", len(rows) == len(states) and set(states) == set(last),
             f"{len(rows)} rows of {len(last)} ids")
        wrong = [key for key, n in last.items() if key in states and
                 (states[key]["count"], states[key]["last"], states[key]["disorder"])
                 != (n, n, 0)]
        rule("sagas are as after a serial run", not wrong, str(wrong[:3]))
        seen = self.captured("sagas.Seen")
        rule("each event's effect is there once",
             max(seen.values()) == 1 and len(seen) == sum(last.values()),
             f"{sum(seen.values())} of {sum(last.values())}")
        ticked = self.captured("sagas.Ticked")
        rule("a deadline fires once at most, and the last one of each saga does",
             max(ticked.values()) == 1
             and all((key, n) in ticked for key, n in last.items())
             and set(ticked) <= set(seen), f"{len(ticked)} fired")
        fired = collections.Counter(key for key, _ in ticked)
        wrong = [key for key in states if states[key]["ticks"] != fired[key]]
        rule("what deadlines did to sagas and what they caused agree", not wrong,
             str(wrong[:3]))
        self.races.judge(rule)


def run(rule, program, folder, database, chance, count):
    campaign = Campaign(program, pathlib.Path(folder), database, chance)
    campaign.run(count)
    campaign.judge(rule)
