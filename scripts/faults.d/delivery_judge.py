"""The messages of the delivery campaign, what a database says about them, and
which of it must not be so."""

import collections
import json
import uuid

CONSUMERS = ("states", "notes")
KEYS, PARTITIONS = 300, 12
ATTEMPTS = 12  # more than a message fails, and is killed in
DEAD = ("DEAD_LETTER", "DEAD_LETTER_KEY")

Message = collections.namedtuple("Message", "n key fails who policy")
Row = collections.namedtuple("Row", "name key n position status failures failed counted")


def partition(key):
    value = 2166136261
    for byte in key.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value % PARTITIONS


class Stream:
    """The messages by number, made as they are appended. What it makes depends
    on the seed alone."""

    def __init__(self, folder, chance):
        self.folder, self.chance = folder, chance
        self.messages = []  # number n is at n - 1

    def more(self, count, healthy=False):
        path = self.folder / f"from-{len(self.messages) + 1}.ndjson"
        with open(path, "w", encoding="utf-8") as out:
            for _ in range(count):
                message = self.message(healthy)
                self.messages.append(message)
                out.write(json.dumps({
                    # a writer that others have kept busy appends its file again
                    "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"delivery {message.n}")),
                    "aggregate_type": "delivery.thing", "aggregate_id": message.key,
                    "type": "delivery.Put", "payload": {
                        "n": message.n, "fails": message.fails, "who": message.who,
                        "policy": message.policy}}) + "\n")
        return path

    def message(self, healthy):
        chance = self.chance
        fails = 0
        if not healthy and chance.random() < 0.12:
            fails = chance.choice([1, 1, 2, 2, 2, 1000000])
        return Message(len(self.messages) + 1, f"K-{chance.randrange(KEYS)}", fails,
                       chance.choice(CONSUMERS + ("both",)),
                       chance.choices(["dead_letter", "dead_letter_key", "skip", "halt"],
                                      [4, 4, 3, 1])[0])

    def dies(self, name, n):
        """The policy that its spent budget leads to, or None."""
        message = self.messages[n - 1]
        mine = message.who in (name, "both") and message.fails >= ATTEMPTS
        return message.policy if mine else None

    def fails(self, name, n):
        message = self.messages[n - 1]
        return message.fails if message.who in (name, "both") else 0


class Look:
    """What is stored, read while nobody writes."""

    def __init__(self, host, numbers):
        query = host.query
        for position, n in query(
                "SELECT global_position, payload FROM EVENT_STORE WHERE global_position"
                f" > {max(numbers, default=0)} ORDER BY global_position"):
            numbers[position] = json.loads(n)["n"]
        self.numbers = numbers
        self.states = {name: (state, reason, epoch) for name, state, reason, epoch in query(
            "SELECT consumer_name, coalesce(state, 'RUNNING'), coalesce(halt_reason, '-'),"
            " coalesce(epoch, 0) FROM CONSUMERS")}
        self.reached, self.replaying = {}, set()
        for name, number, position, through in query(
                "SELECT c.consumer_name, k.partition_no, coalesce(k.position, 0),"
                " coalesce(k.replay_through, 0) FROM CONSUMER_CHECKPOINTS AS k"
                " JOIN CONSUMERS AS c ON c.id = k.consumer_id"):
            self.reached[name, number] = position
            if through > 0:
                self.replaying.add(name)
        self.rows = [Row(name, key, numbers[position], position, status, failures,
                         failed == 1, counted == 1)
                     for name, key, position, status, failures, failed, counted in query(
                         "SELECT c.consumer_name, u.resolved_key, u.message_position,"
                         " u.status, u.failure_count,"
                         " CASE WHEN u.failure_reason IS NULL THEN 0 ELSE 1 END,"
                         " CASE WHEN u.failure_reason LIKE '%ended without a word%'"
                         " THEN 1 ELSE 0 END"
                         " FROM CONSUMER_UNDELIVERED_MESSAGES AS u"
                         " JOIN CONSUMERS AS c ON c.id = u.consumer_id"
                         " ORDER BY u.message_position")]
        self.applied = {name: collections.defaultdict(list) for name in CONSUMERS}
        self.models = {}
        for key, state, epoch in query(
                "SELECT s.read_model_id, s.state, coalesce(e.epoch, -1) FROM states AS s"
                " LEFT JOIN READ_MODEL_EPOCHS AS e ON e.projection = 'states'"
                " AND e.read_model_key = s.read_model_id"):
            model = json.loads(state)
            self.models[key] = model
            # during a replay what an older epoch made counts as absent
            if "states" not in self.replaying or epoch == self.states["states"][2]:
                self.applied["states"][key] = list(zip(model["seen"], model["attempts"]))
        for key, n, attempt in query("SELECT model_key, n, attempt FROM notes ORDER BY id"):
            self.applied["notes"][key].append((n, attempt))
        self.skips = query("SELECT count(*) FROM CONSUMER_SKIPPED_MESSAGES")[0][0]

    def reach(self, name):
        return sum(position for (mine, _), position in self.reached.items() if mine == name)

    def dead(self):
        return [row for row in self.rows if row.status in DEAD and row.failed]


class Judge:
    """Compares looks with the messages, and collects what is wrong."""

    def __init__(self, stream):
        self.stream = stream
        self.named = {name: set() for name in CONSUMERS}    # may be passed over
        self.deleted = {name: set() for name in CONSUMERS}  # must be
        self.past = set()  # consumers that were let past what halted them
        self.epochs = {name: 0 for name in CONSUMERS}
        self.mended_keys = set()  # of states, rebuilt by handlers that do not fail
        self.in_hand = 0  # messages that killed workers can have had in hand: one each
        self.spent = 0  # attempts that kills have cost, as of the last look
        self.wrong = []

    def may_miss(self, name, n):
        policy = self.stream.dies(name, n)
        return (n in self.named[name] or policy == "skip"
                or policy == "halt" and name in self.past)

    def look(self, look, where):
        """Every rule about the moment."""
        by_key = collections.defaultdict(list)
        for position, n in look.numbers.items():
            by_key[self.stream.messages[n - 1].key].append((position, n))
        rows = collections.defaultdict(list)
        for row in look.rows:
            rows[row.name, row.key].append(row)
        self.spent = 0
        for name in CONSUMERS:
            epoch = look.states[name][2]
            if epoch != self.epochs[name]:  # a rebuild meets them all again
                self.epochs[name] = epoch
                self.named[name].clear()
                self.deleted[name].clear()
                self.past.discard(name)
                if name == "states":
                    self.mended_keys.clear()
            for key, all_of_key in by_key.items():
                reached = look.reached.get((name, partition(key)), 0)
                due = [n for position, n in sorted(all_of_key) if position <= reached]
                self.key(name, key, due, look.applied[name][key], rows[name, key], where)
            strange = set(look.applied[name]) - set(by_key)
            if strange:
                self.wrong.append(f"{where}: {name} has made {strange}")
        if self.spent > self.in_hand:
            self.wrong.append(f"{where}: kills of {self.in_hand} workers have cost"
                              f" {self.spent} attempts")

    def key(self, name, key, due, applied, rows, where):
        def wrong(text):
            self.wrong.append(f"{where}: {name} {key}: {text}")

        numbers = [n for n, _ in applied]
        held = [row.n for row in rows]
        if len(set(numbers)) < len(numbers):
            wrong(f"applied twice: {numbers}")
        if len(set(held)) < len(held) or set(held) & set(numbers):
            wrong(f"applied and undelivered, or that twice: {numbers}, {held}")
        # one whose attempt was counted before it was made may lie ahead
        counted = {row.n for row in rows if row.status == "FAILED"}
        if not set(numbers) | set(held) <= set(due) | counted:
            wrong(f"{set(numbers) | set(held)} behind the checkpoint, which has {due}")
        missing = set(due) - set(numbers) - set(held)
        lost = [n for n in missing if not self.may_miss(name, n)]
        if lost:
            wrong(f"lost: {lost}")
        if self.deleted[name] & (set(numbers) | set(held)):
            wrong(f"deleted and there: {self.deleted[name] & set(due)}")
        in_order = [n for n in numbers if self.stream.dies(name, n) != "dead_letter"]
        if in_order != sorted(in_order):
            wrong(f"out of order: {numbers}")
        for row in rows:
            if (row.failed and row.status != "DEAD_LETTER"
                    and self.stream.dies(name, row.n) != "dead_letter"
                    and numbers and max(numbers) > row.n):
                wrong(f"{row.n} is {row.status} and holds nothing: {numbers}")
            self.spent += max(0, row.failures - self.stream.fails(name, row.n))
            if row.failures > ATTEMPTS:
                wrong(f"{row.n} has failed {row.failures} times")
        for n, attempt in applied:
            wanted = self.stream.fails(name, n) + 1
            self.spent += max(0, attempt - wanted)
            if attempt < wanted and not (name == "states" and key in self.mended_keys
                                         and attempt == 1):
                wrong(f"{n} was applied by attempt {attempt} and not {wanted}")

    def journal(self, rows, name="notes"):
        """All that was ever applied as rows, in the order of the commits."""
        epoch = 0
        last, seen = {}, set()
        for key, n in rows:
            if n == 0:
                epoch += 1
                last, seen = {}, set()
                continue
            if (key, n) in seen:
                self.wrong.append(f"journal: {name} {key} {n} twice in epoch {epoch}")
            seen.add((key, n))
            if self.stream.dies(name, n) == "dead_letter":
                continue
            if last.get(key, 0) > n:
                self.wrong.append(f"journal: {name} {key} {n} behind {last[key]}")
            last[key] = n
        return epoch
