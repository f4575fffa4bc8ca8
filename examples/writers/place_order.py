#!/usr/bin/env python3
"""Places an order: a row of the shop's own table and the event that tells of it,
in one transaction of this program.

    place_order.py DATABASE_URL ORDER CUSTOMER CENTS

Takes psycopg2 on PostgreSQL and PyMySQL on MariaDB (python3-psycopg2 and
python3-pymysql on Debian).
"""

import json
import sys
import time
import urllib.parse
import uuid

TRIES = 5


class OnPostgres:
    def __init__(self, url):
        import psycopg2

        self.connection = psycopg2.connect(url)

    def append(self, cursor, aggregate_type, aggregate_id, expected, events):
        cursor.execute(
            "SELECT * FROM moontide_append(NULL::event_store, %s, %s, %s,"
            " %s::text[], %s::json[], ids => %s::uuid[])",
            (aggregate_type, aggregate_id, expected,
             [event["type"] for event in events],
             [json.dumps(event["payload"]) for event in events],
             [event["id"] for event in events]))
        return cursor.fetchall()

    @staticmethod
    def may_try_again(error):
        # lost connections have no code; 40001, 40P01: another was faster
        return getattr(error, "pgcode", "") in (None, "40001", "40P01")


class OnMariadb:
    def __init__(self, url):
        import pymysql

        parts = urllib.parse.urlsplit(url)
        self.connection = pymysql.connect(
            host=parts.hostname, port=parts.port or 3306,
            user=urllib.parse.unquote(parts.username or ""),
            password=urllib.parse.unquote(parts.password or ""),
            database=parts.path[1:], charset="utf8mb4")

    def append(self, cursor, aggregate_type, aggregate_id, expected, events):
        cursor.callproc("moontide_append", (aggregate_type, aggregate_id,
                                            expected, json.dumps(events)))
        rows = cursor.fetchall()
        cursor.nextset()  # the result of the call itself
        return rows

    @staticmethod
    def may_try_again(error):
        # lost connections; waited too long for a lock, deadlock
        return error.args[:1] and error.args[0] in (2003, 2006, 2013, 1205, 1213)


def place_order(database, order, customer, cents, event_id):
    """The position of the event. Its id was made before the first try: an order
    whose commit was lost on the way is found, not placed twice."""
    event = {"type": "order.Placed", "id": event_id,
             "payload": {"customer": customer, "cents": cents}}
    with database.connection.cursor() as cursor:
        cursor.execute("SELECT event_id FROM orders WHERE id = %s", (order,))
        known = cursor.fetchone()
        if known is None:
            cursor.execute(
                "INSERT INTO orders (id, customer, cents, event_id)"
                " VALUES (%s, %s, %s, %s)", (order, customer, cents, event_id))
        elif known[0] != event_id:
            raise SystemExit(f"order {order} is there already")
        # last, because it holds the place in the row of all events
        rows = database.append(cursor, "shop.order", order, "none", [event])
    database.connection.commit()
    return rows[0][2]


def main():
    url, order, customer, cents = sys.argv[1:]
    kind = OnPostgres if url.startswith("postgres") else OnMariadb
    event_id = str(uuid.uuid4())
    for attempt in range(1, TRIES + 1):
        database = None
        try:
            database = kind(url)
            position = place_order(database, order, customer, int(cents),
                                   event_id)
            print(f"order {order} has position {position}")
            return
        except Exception as error:
            if attempt == TRIES or not kind.may_try_again(error):
                raise
            time.sleep(0.1 * attempt)
        finally:
            if database is not None:
                database.connection.close()


if __name__ == "__main__":
    main()
