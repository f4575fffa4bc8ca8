#!/usr/bin/env python3
"""Computes the bank's read models anew from the NDJSON file that was appended
and compares them with what the database holds: account summaries, turnover
per day, and the bytes of every payload. It shares no code with the host.

  verify.py EVENTS.ndjson --database URL --moontide PROGRAM [--config FILE]

Prints one line per comparison; exits 0 when all agree and 1 when not.
"""

import argparse
import collections
import json
import os
import sqlite3
import subprocess
import sys
import urllib.parse

SHOWN = 5  # differences printed per comparison
PAYLOAD_MARK = '"payload":'


def read_events(path):
    """Yields (event, payload text as written)."""
    decoder = json.JSONDecoder()
    with open(path, encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            event = json.loads(line)
            # The generator puts the payload last, and its mark nowhere else
            # before it.
            start = line.index(PAYLOAD_MARK) + len(PAYLOAD_MARK)
            value, end = decoder.raw_decode(line, start)
            if value != event["payload"] or line[end:].strip() != "}":
                sys.exit(f"{path}:{number}: the payload is not the last field")
            yield event, line[start:end]


def compute(path):
    accounts = {}
    turnover = collections.defaultdict(lambda: [0, 0])
    payloads = {}
    for event, text in read_events(path):
        key, payload = event["aggregate_id"], event["payload"]
        kind = event["type"].removeprefix("account.")
        payloads[event["id"]] = text
        if kind == "Opened":
            accounts[key] = {"iban": payload["iban"], "balance": 0}
        elif kind == "Closed":
            del accounts[key]
        elif kind in ("Deposited", "Withdrawn"):
            sign = 1 if kind == "Deposited" else -1
            accounts[key]["balance"] += sign * payload["amount"]
            day = turnover[event["occurred_at"][:10]]
            day[0] += payload["amount"]
            day[1] += 1
        else:
            sys.exit(f"{path}: unexpected type {event['type']}")
    return accounts, {day: tuple(sums) for day, sums in turnover.items()}, payloads


def ask(options, *words):
    """Standard output of the program for `words`."""
    command = [options.moontide, *words, "--database", options.database]
    if options.config:
        command += ["--config", options.config]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return done.stdout.decode("utf-8")


def stored_accounts(options):
    rows = json.loads(ask(options, "read", "account-summary", "--json",
                          "--limit", "10000000"))
    accounts = {row["key"]: row["state"] for row in rows}
    if len(accounts) != len(rows):
        sys.exit("account-summary: a key is there twice")
    return accounts


def query_sqlite(url, sql):
    path = url.removeprefix("sqlite:")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def query_postgres(url, sql):
    """Each row as a JSON array of texts, so that no byte has to be escaped;
    numbers are read back as numbers."""
    copy = ("SELECT json_build_array(" + ", ".join(
        f"q.c{i}::text" for i in range(1, sql.count(",") + 2)) +
        f") FROM ({sql}) AS q ({', '.join(f'c{i}' for i in range(1, sql.count(',') + 2))})")
    done = subprocess.run(["psql", url, "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", copy],
                          stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"psql: exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]


def query_mariadb(url, sql):
    """By the program mariadb, which prints a row as one line of fields with
    tabs between them and \\-escapes inside."""
    parts = urllib.parse.urlsplit(url)
    words = dict(urllib.parse.parse_qsl(parts.query))
    command = ["mariadb", "--no-defaults", "--batch", "--skip-column-names",
               "--quick", "--default-character-set=utf8mb4"]
    for name, value in (("host", parts.hostname), ("port", parts.port),
                        ("user", parts.username), ("socket", words.get("socket"))):
        if value is not None:
            command.append(f"--{name}={urllib.parse.unquote(str(value))}")
    command += ["--execute", sql, urllib.parse.unquote(parts.path[1:])]
    environment = dict(os.environ)
    if parts.password is not None: # not on the command line, where all can see it
        environment["MYSQL_PWD"] = urllib.parse.unquote(parts.password)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"mariadb: exit code {done.returncode}")
    lines = done.stdout.decode("utf-8").split("\n")[:-1]
    return [tuple(field_of(text) for text in line.split("\t")) for line in lines]


def field_of(text):
    if text == "NULL":
        return None
    if text.lstrip("-").isdigit():
        return int(text)
    if "\\" not in text:
        return text
    signs = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}
    out, at = [], 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
            out.append(signs[text[at]])
        else:
            out.append(text[at])
        at += 1
    return "".join(out)


QUERIES = {
    "sqlite": query_sqlite,
    "postgres": query_postgres, "postgresql": query_postgres,
    "mysql": query_mariadb, "mariadb": query_mariadb,
}


def query(options, sql):
    """Rows of a table, read without the program."""
    scheme = options.database.split(":")[0]
    if scheme not in QUERIES:
        sys.exit(f"verify.py cannot read tables of {scheme}")
    return QUERIES[scheme](options.database, sql)


def stored_columns(options):
    """The declared fields as columns, which people query."""
    rows = query(options, "SELECT read_model_id, iban, balance FROM account_summary")
    return {key: {"iban": iban, "balance": int(balance)}
            for key, iban, balance in rows}


def stored_turnover(options):
    rows = query(options, "SELECT day, cents, movements FROM daily_turnover")
    return {day: (int(cents), int(movements)) for day, cents, movements in rows}


def stored_payloads(options):
    rows = query(options, f"SELECT id, payload FROM {options.event_table}")
    payloads = dict(rows)
    if len(payloads) != len(rows):
        sys.exit("events: an id is there twice")
    return payloads


def compare(what, wanted, found):
    wrong = [key for key in wanted.keys() | found.keys()
             if wanted.get(key) != found.get(key)]
    verdict = "differ" if wrong else "agree"
    print(f"{what}: {len(wanted)} expected, {len(found)} found, {verdict}")
    for key in sorted(wrong)[:SHOWN]:
        print(f"  {key}: expected {wanted.get(key)}, found {found.get(key)}")
    if len(wrong) > SHOWN:
        print(f"  and {len(wrong) - SHOWN} more")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description="Compares the bank's read models with a computation of its own.")
    parser.add_argument("events", help="the NDJSON file that was appended")
    parser.add_argument("--database", required=True,
                        help="sqlite:PATH, postgresql://... or mysql://...")
    parser.add_argument("--moontide", default="moontide", help="the program")
    parser.add_argument("--config", help="moontide.conf.lua of the example")
    parser.add_argument("--event-table", default="EVENT_STORE")
    options = parser.parse_args()

    accounts, turnover, payloads = compute(options.events)
    results = [
        compare("account summaries", accounts, stored_accounts(options)),
        compare("account columns", accounts, stored_columns(options)),
        compare("turnover of days", turnover, stored_turnover(options)),
        compare("payload bytes", payloads, stored_payloads(options)),
    ]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
