"""The databases of the fault campaign, looked into from outside of the host:
SQLite's file with Python's own module, servers with their clients."""

import copy
import os
import pathlib
import shlex
import sqlite3
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEADLINE = 120  # seconds that anything here may take
PAUSE = 0.01


def fail(message):
    sys.exit(f"faults: {message}")


def comes_true(condition, seconds):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(PAUSE)
    return True


def wait_until(condition, what):
    if not comes_true(condition, DEADLINE):
        fail(f"waited in vain until {what}")


# --- SQLite ----------------------------------------------------------------------


class Sqlite:
    name = "sqlite"
    gaps = False  # positions have none
    end = "SELECT val FROM EVENT_STORE_GLOBAL_POSITION"

    def __init__(self, folder, name):
        self.path = folder / f"{name}.db"
        self.url = f"sqlite:{self.path}"

    def query(self, sql):
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True,
                                     timeout=DEADLINE)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def again(self):
        return self

    def is_quiet(self):
        """No process holds a lock on the file."""
        connection = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            return True
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()

    transaction_id = "NULL"

    def in_hand(self, tracked):
        """The process, which stands still, has the file: appends are short."""
        return (bool(tracked) and not self.is_quiet()
                and not comes_true(self.is_quiet, 0.3))

    def hold_writers(self, _table):
        connection = sqlite3.connect(self.path, timeout=DEADLINE,
                                     isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def drop(self):
        pass


# --- servers ---------------------------------------------------------------------


def scripts_servers(*words):
    return subprocess.run([ROOT / "scripts/servers", *words], check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True).stdout


class Servers:
    """The private servers, started when they do not run, and stopped then."""

    def __init__(self):
        name = os.environ.get("MOONTIDE_SERVERS") or "servers"
        self.started = not (ROOT / "build" / name / "state").exists()
        scripts_servers("start")
        words = shlex.split(scripts_servers("env"))
        self.urls = dict(word.split("=", 1) for word in words if "=" in word)

    def stop(self):
        if self.started:
            scripts_servers("stop")


class Session:
    """A client that stays connected: one answer after the other."""

    MARK = "that was all"

    def __init__(self, command):
        self.client = subprocess.Popen(command, stdin=subprocess.PIPE, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def rows(self, sql):
        """Rows of texts and whole numbers; None when the server is gone."""
        rows = []
        try:
            self.client.stdin.write(f"{sql};\nSELECT '{self.MARK}';\n")
            self.client.stdin.flush()
        except OSError:
            return None
        for line in self.client.stdout:
            line = line.rstrip("\n")
            if line == self.MARK:
                return rows
            rows.append(tuple(int(field) if field.lstrip("-").isdigit() else field
                              for field in line.split("\t")))
        return None

    def why(self):
        self.client.kill()
        return self.client.communicate()[1]

    def close(self):
        self.client.kill()
        self.client.communicate()


class Server:
    """A database of its own on one of the servers."""

    position = 2 # in the rows of append_sql

    def __init__(self, servers, name):
        server = servers.urls[self.variable]
        self.name_there = f"faults_{os.getpid()}_{name}"
        self.at = urllib.parse.urlsplit(server)
        self.server_url = server
        self.url = self.at._replace(path="/" + self.name_there).geturl()
        self.session = None
        self.run_there(f"CREATE DATABASE {self.name_there}")

    def run_there(self, sql):
        session = Session(self.client(self.server_url))
        if session.rows(sql) is None:
            fail(f"{sql}: {session.why()}")
        session.close()

    def again(self):
        """The same with a session of its own, for another thread."""
        other = copy.copy(self)
        other.session = None
        return other

    def open(self):
        return Session(self.client(self.url))

    def query(self, sql):
        """Also over a restart of the server."""
        limit = time.monotonic() + DEADLINE
        while True:
            if self.session is None:
                self.session = self.open()
            rows = self.session.rows(sql)
            if rows is not None:
                return rows
            why = self.session.why()
            self.session = None
            if time.monotonic() > limit:
                fail(f"{sql}: {why}")
            time.sleep(0.1)

    def crash(self):
        scripts_servers("crash", self.server)

    def hold_writers(self, table):
        return self.hold(table)

    renews = 0 # seconds: what the server shows may be so old

    def in_hand(self, tracked):
        """The process, which stands still, has written and not committed."""
        time.sleep(self.renews)
        ports = ", ".join(map(str, tracked.ports())) or "0"
        for _ in range(2):
            if self.query(self.writing.format(ports=ports))[0][0] == 0:
                return False
            time.sleep(0.02)
        return True

    def end_session(self, tracked):
        """Ends the process's sessions on the server; false when it has none."""
        ports = ", ".join(map(str, tracked.ports())) or "0"
        ended = 0
        for (number,) in self.query(self.sessions.format(ports=ports)):
            self.query(self.end_one.format(number=number))
            ended += 1
        return ended > 0

    def drop(self):
        if self.session is not None:
            self.session.close()
        self.run_there(self.drop_there.format(self.name_there))


class Postgres(Server):
    name, server, variable = "postgres", "postgres", "POSTGRES_URL"
    gaps = True  # a position that was drawn and rolled back is gone
    end = ("SELECT CASE WHEN is_called THEN last_value ELSE 0 END"
           " FROM EVENT_STORE_GLOBAL_POSITION")
    drop_there = "DROP DATABASE {} WITH (FORCE)"

    @staticmethod
    def client(url):
        return ["psql", url, "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1"]

    transaction_id = "xmin::text::bigint"
    writing = ("SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
               " AND client_port IN ({ports})")
    sessions = "SELECT pid FROM pg_stat_activity WHERE client_port IN ({ports})"
    end_one = "SELECT pg_terminate_backend({number})"

    def is_quiet(self):
        return self.query(
            "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle'"
            " AND datname = current_database() AND pid <> pg_backend_pid()") == [(0,)]

    def hold(self, table):
        session = self.open()
        session.rows(f"BEGIN; LOCK TABLE {table} IN EXCLUSIVE MODE")
        return session

    @staticmethod
    def append_sql(aggregate_type, aggregate_id, event_type, count):
        """Gives rows with the id first, and the position at `position`."""
        types = ", ".join([f"'{event_type}'"] * count)
        payloads = ", ".join(f"'{{\"n\": {n}}}'" for n in range(count))
        return (f"SELECT id, sequence_no, global_position FROM moontide_append(NULL::event_store,"
                f" '{aggregate_type}', '{aggregate_id}', 'any', ARRAY[{types}],"
                f" ARRAY[{payloads}]::json[])")

    @staticmethod
    def ends(name, prepared):
        """Begin, prepare, commit and roll back."""
        if not prepared:
            return "BEGIN", "", "COMMIT", "ROLLBACK"
        return ("BEGIN", f"PREPARE TRANSACTION '{name}'",
                f"COMMIT PREPARED '{name}'", f"ROLLBACK PREPARED '{name}'")

    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ"

    def waiting(self, table):
        """Backends that stand in a statement because of hold()."""
        return self.query(f"SELECT count(*) FROM pg_locks WHERE NOT granted"
                          f" AND relation = '{table}'::regclass")[0][0]


class Mysql(Server):
    name, server, variable = "mysql", "mariadb", "MARIADB_URL"
    gaps = False
    renews = 0.12
    end = "SELECT val FROM EVENT_STORE_GLOBAL_POSITION"
    drop_there = "DROP DATABASE {}"

    @staticmethod
    def client(url):
        at = urllib.parse.urlsplit(url)
        return ["mariadb", "--no-defaults", "--default-character-set=utf8mb4",
                f"--host={at.hostname}", f"--port={at.port}", f"--user={at.username}",
                "--batch", "--skip-column-names", "--unbuffered", at.path[1:]]

    transaction_id = "NULL"
    writing = ("SELECT count(*) FROM information_schema.innodb_trx AS t"
               " JOIN information_schema.processlist AS p"
               " ON p.id = t.trx_mysql_thread_id WHERE t.trx_rows_modified > 0"
               " AND SUBSTRING_INDEX(p.host, ':', -1) IN ({ports})")
    sessions = ("SELECT id FROM information_schema.processlist"
                " WHERE SUBSTRING_INDEX(host, ':', -1) IN ({ports})")
    end_one = "KILL {number}"

    def is_quiet(self):
        time.sleep(0.15) # the server renews what it shows only between looks
        return self.query(
            "SELECT count(*) FROM information_schema.innodb_trx AS t"
            " JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id"
            " WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()") == [(0,)]

    def hold(self, table):
        session = self.open()
        session.rows(f"LOCK TABLES {table} WRITE")
        return session

    def waiting(self, table):
        return self.query(
            "SELECT count(*) FROM information_schema.processlist"
            " WHERE db = DATABASE() AND state LIKE 'Waiting for table%lock'"
            f" AND info LIKE '%{table}%'")[0][0]

    @staticmethod
    def append_sql(aggregate_type, aggregate_id, event_type, count):
        events = ", ".join(f'{{"type": "{event_type}", "payload": {{"n": {n}}}}}'
                           for n in range(count))
        return (f"CALL moontide_append('{aggregate_type}', '{aggregate_id}', 'any',"
                f" '[{events}]')")

    @staticmethod
    def ends(name, prepared):
        if not prepared:
            return "BEGIN", "", "COMMIT", "ROLLBACK"
        return (f"XA START '{name}'", f"XA END '{name}'; XA PREPARE '{name}'",
                f"XA COMMIT '{name}'", f"XA ROLLBACK '{name}'")

    begin_reading = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
