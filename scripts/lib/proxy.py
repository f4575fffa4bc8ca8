#!/usr/bin/env python3
"""Stands between a program and a database server and cuts connections.

  scripts/lib/proxy.py postgres|mysql HOST:PORT [OPTION...]

  --cut before|after|behind   before: the statement never reaches the server;
                              after: it is done and its answer stays here;
                              behind: the answer arrives and nothing after it
  --cut rollback              nothing is cut: PostgreSQL is asked to roll back
                              instead, as it does by itself after an error
  --at REGEX                  the statement (default: COMMIT)
  --like TEXT                 only at the end of a transaction that wrote just
                              this: an "ends" of a trace
  --nth N                     the how many-th of them (default: the first)
  --random SEED --every N     cuts at random, after N pieces on average
  --delay MS                  holds each piece back, both ways
  --trace FILE                a JSON line per round trip, statement and cut

Prints the port that it listens on, on 127.0.0.1, and goes on until it is
killed. SIGUSR1: it cuts all connections and takes none until SIGUSR2, as if the
server were gone. As a module: Proxy. It reads both protocols far enough to know what is
a statement, whatever its pieces on the wire; encrypted connections are
declined.
"""

import argparse
import json
import random
import re
import select
import signal
import socket
import struct
import threading
import time

PIECE = 1 << 16
PATIENCE = 30  # seconds to reach the server

# Statements that change nothing in a table.
READS = re.compile(r"(SELECT|SET|BEGIN|START|DO|RELEASE)\b", re.IGNORECASE)


def written(statements):
    """What a transaction did but reading, as one text."""
    heads = {re.sub(r"\s+", " ", text)[:60] for text in statements}
    return "; ".join(sorted(head for head in heads if not READS.match(head)))


class Cut:
    """The one cut at a statement, and whether it has happened."""

    def __init__(self, when, at="^COMMIT$", like=None, nth=1):
        self.when = when
        self.at = re.compile(at, re.IGNORECASE)
        self.like = like
        self.left = nth
        self.done = False

    def meets(self, text, since):
        """Counts the statement; true when it is the one."""
        if self.done or not self.at.search(text):
            return False
        if self.like is not None and self.like != written(since):
            return False
        self.left -= 1
        return self.left == 0


# --- protocols: bytes in, (message, statement that it runs or None) out ----------


class Postgres:
    """What a client sends to PostgreSQL, and the answers to COMMIT."""

    STARTUP, DECLINED, CANCEL = 8, (80877103, 80877104), 80877102

    def __init__(self):
        self.held = b""
        self.started = False
        self.names = {}
        self.answers = b""

    def declines(self):
        """Takes a question for encryption away; the answer for the client."""
        if self.started or len(self.held) < self.STARTUP:
            return b""
        size, code = struct.unpack("!ii", self.held[:self.STARTUP])
        if code not in self.DECLINED:
            return b""
        self.held = self.held[size:]
        return b"N"

    def messages(self, piece):
        self.held += piece
        while True:
            head = 5 if self.started else 4
            if len(self.held) < max(head, 0 if self.started else self.STARTUP):
                return
            size = struct.unpack("!i", self.held[head - 4:head])[0] + head - 4
            code = struct.unpack("!i", self.held[4:8])[0] if head == 4 else 0
            if code in self.DECLINED or len(self.held) < size:
                return
            message, self.held = self.held[:size], self.held[size:]
            text = self.statement(message) if self.started else None
            self.started = True
            yield message, text

    def statement(self, message):
        kind, body = message[:1], message[5:]
        if kind == b"Q":
            return body.split(b"\0")[0].decode("utf-8", "replace")
        if kind == b"P":
            name, text = body.split(b"\0")[:2]
            self.names[name] = text.decode("utf-8", "replace")
        if kind == b"B":
            return self.names.get(body.split(b"\0")[1], "")
        return None

    @staticmethod
    def turned(message):
        """The message with another end of the transaction in it, or None."""
        if message[:1] not in b"PQ" or b"COMMIT\0" not in message:
            return None
        body = message[5:].replace(b"COMMIT\0", b"ROLLBACK\0")
        return message[:1] + struct.pack("!i", 4 + len(body)) + body

    def answered(self, piece):
        """(before, answer, rest) once the answer to COMMIT is whole, or the
        whole piece as what comes before it."""
        self.answers += piece
        at = 0
        while len(self.answers) >= at + 5:
            size = struct.unpack("!i", self.answers[at + 1:at + 5])[0] + 1
            if len(self.answers) < at + size:
                break
            message = self.answers[at:at + size]
            if message[:1] == b"E" or message[:1] == b"C" and message[5:-1] in (
                    b"COMMIT", b"ROLLBACK"):
                found = self.answers[:at], message, self.answers[at + size:]
                self.answers = b""
                return found
            at += size
        whole, self.answers = self.answers[:at], self.answers[at:]
        return whole, b"", b""


class Mysql:
    """What a client sends to MariaDB, and the names of prepared statements."""

    QUERY, PREPARE, EXECUTE, BULK = 0x03, 0x16, 0x17, 0xfa

    def __init__(self):
        self.held = b""
        self.preparing = []
        self.names = {}
        self.last = ""

    def declines(self):
        return b""

    def messages(self, piece):
        self.held += piece
        while len(self.held) >= 4:
            size = 4 + int.from_bytes(self.held[:3], "little")
            if len(self.held) < size:
                return
            message, self.held = self.held[:size], self.held[size:]
            yield message, self.statement(message)

    def statement(self, message):
        if message[3] != 0 or len(message) < 5: # only the first of a command
            return None
        kind, body = message[4], message[5:]
        if kind == self.QUERY:
            return body.decode("utf-8", "replace")
        if kind == self.PREPARE:
            self.last = body.decode("utf-8", "replace")
            self.preparing.append(self.last)
        if kind in (self.EXECUTE, self.BULK):
            name = body[:4]
            return self.last if name == b"\xff" * 4 else self.names.get(name, "")
        return None

    def learn(self, piece):
        """The server's name for what was prepared is in its first packet."""
        if self.preparing and len(piece) >= 9 and piece[3:5] == b"\x01\x00":
            self.names[piece[5:9]] = self.preparing.pop(0)
        elif self.preparing and piece[4:5] == b"\xff":
            self.preparing.pop(0)

    def answered(self, piece):
        return b"", piece, b""


PROTOCOLS = {"postgres": Postgres, "mysql": Mysql}


# --- connections ---------------------------------------------------------------


class Gone(Exception):
    """The connection ends here."""


class Connection:
    """One client's connection and the one to the server that belongs to it."""

    def __init__(self, proxy, client, number):
        self.proxy, self.client, self.number = proxy, client, number
        self.server = None
        self.protocol = PROTOCOLS[proxy.dialect]()
        self.since = []       # statements of the transaction
        self.turns = 0        # the client asked, the server answered
        self.asking = False   # the client spoke last
        self.awaited = False  # the cut comes with the next answer
        self.after = proxy.pieces()

    def run(self):
        try:
            self.server = socket.create_connection(self.proxy.server, PATIENCE)
            self.server.settimeout(None)
            for end in (self.client, self.server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                ready = select.select([self.client, self.server], [], [])[0]
                if self.client in ready:
                    self.from_client(self.receive(self.client))
                if self.server in ready:
                    self.from_server(self.receive(self.server))
        except (OSError, ValueError, Gone):
            pass
        finally:
            self.close()
            self.proxy.forget(self)

    def receive(self, end):
        piece = end.recv(PIECE)
        if not piece:
            raise Gone
        if self.after is not None:
            self.after -= 1
            if self.after < 0:
                self.proxy.trace({"cut": "random", "connection": self.number})
                raise Gone
        if self.proxy.delay:
            time.sleep(self.proxy.delay)
        return piece

    def from_client(self, piece):
        if not self.asking:
            self.asking = True
            self.turns += 1
            self.proxy.trace({"connection": self.number, "turn": self.turns})
        out = b""
        for message, text in self.protocol.messages(piece):
            if text is not None and self.cuts_before(text):
                self.server.sendall(out)
                raise Gone
            out += self.turns_back(message) or message
        self.server.sendall(out)
        answer = self.protocol.declines()
        while answer:
            self.client.sendall(answer)
            self.asking = False
            out = b"".join(m for m, _ in self.protocol.messages(b""))
            self.server.sendall(out)
            answer = self.protocol.declines()

    def cuts_before(self, text):
        text = text.strip()
        event = {"connection": self.number, "turn": self.turns, "statement": text}
        if text.upper() == "COMMIT":
            event["ends"] = written(self.since)
        self.proxy.trace(event)
        cut = self.proxy.cut
        met = (cut is not None and cut.when != "rollback"
               and self.proxy.meets(text, self.since))
        self.since.append(text)
        if re.match(r"(COMMIT|ROLLBACK)\b(?! TO)", text, re.IGNORECASE):
            self.since = []
        if met and cut.when == "before":
            self.proxy.happened(self)
            return True
        self.awaited = self.awaited or met
        return False

    def turns_back(self, message):
        cut = self.proxy.cut
        if cut is None or cut.when != "rollback" or cut.done:
            return None
        turned = self.protocol.turned(message)
        if turned:
            self.proxy.happened(self)
        return turned

    def from_server(self, piece):
        self.asking = False
        if isinstance(self.protocol, Mysql):
            self.protocol.learn(piece)
        if not self.awaited:
            self.client.sendall(piece)
            return
        before, answer, _ = self.protocol.answered(piece)
        self.client.sendall(before)
        if not answer:
            return
        if self.proxy.cut.when == "behind":
            self.client.sendall(answer)
        self.proxy.happened(self)
        raise Gone

    def close(self):
        for end in (self.client, self.server):
            if end is None:
                continue
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class Proxy:
    """Listens until close(). `cut` is a Cut or None; with `every`, each
    connection is cut after so many pieces on average, told by `seed`."""

    def __init__(self, dialect, server, *, cut=None, delay=0.0, seed=0,
                 every=0, trace=None):
        self.dialect, self.server = dialect, server
        self.cut, self.delay, self.every = cut, delay, every
        self.chance = random.Random(seed)
        self.file = trace
        self.lock = threading.Lock()
        self.connections = set()
        self.count = self.cuts = 0
        self.away = False # the server is gone, as it looks from here
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.away:
                client.close()
                continue
            with self.lock:
                self.count += 1
                connection = Connection(self, client, self.count)
                self.connections.add(connection)
            threading.Thread(target=connection.run, daemon=True).start()

    def pieces(self):
        if not self.every:
            return None
        return int(self.chance.expovariate(1 / self.every))

    def meets(self, text, since):
        with self.lock:
            return self.cut.meets(text, since)

    def happened(self, connection):
        with self.lock:
            self.cut.done = True
        self.trace({"cut": self.cut.when, "connection": connection.number})

    def trace(self, event):
        if self.file is None:
            self.cuts += "cut" in event
            return
        with self.lock:
            self.cuts += "cut" in event
            self.file.write(json.dumps(event) + "\n")
            self.file.flush()

    def forget(self, connection):
        with self.lock:
            self.connections.discard(connection)

    def cut_all(self):
        """Cuts every connection now; how many there were."""
        with self.lock:
            connections = list(self.connections)
        for connection in connections:
            connection.close()
        return len(connections)

    def leave(self):
        """Takes no connection, and cuts all, until `away` is false again."""
        self.away = True
        self.cut_all()

    def close(self):
        self.listener.close()
        self.cut_all()


TURNS = (signal.SIGUSR1, signal.SIGUSR2)


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, TURNS) # of all threads, too
    parser = argparse.ArgumentParser(description="A proxy that cuts.")
    parser.add_argument("dialect", choices=sorted(PROTOCOLS))
    parser.add_argument("server", metavar="HOST:PORT")
    parser.add_argument("--cut", choices=("before", "after", "behind", "rollback"))
    parser.add_argument("--at", default="^COMMIT$")
    parser.add_argument("--like")
    parser.add_argument("--nth", type=int, default=1)
    parser.add_argument("--random", type=int, default=0, metavar="SEED")
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0, metavar="MS")
    parser.add_argument("--trace", metavar="FILE")
    options = parser.parse_args()
    host, port = options.server.rsplit(":", 1)
    cut = options.cut and Cut(options.cut, options.at, options.like, options.nth)
    trace = open(options.trace, "w", encoding="utf-8") if options.trace else None
    proxy = Proxy(options.dialect, (host, int(port)), cut=cut,
                  delay=options.delay / 1000, seed=options.random,
                  every=options.every, trace=trace)
    print(proxy.port, flush=True)
    while True:
        if signal.sigwait(TURNS) == signal.SIGUSR1:
            proxy.leave()
        else:
            proxy.away = False


if __name__ == "__main__":
    main()
