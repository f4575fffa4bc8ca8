-- Has the server look at a table; filled in for one at a time. Waits for
-- nobody.
-- not for: sqlite mysql
ANALYZE (SKIP_LOCKED) ${event_store_table}
