-- The highest position in one event table.
SELECT max(global_position) FROM ${event_store_table}
