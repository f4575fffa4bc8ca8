-- The last position handed out to an event.
SELECT val FROM ${event_store_global_position_table} WHERE id = 1
