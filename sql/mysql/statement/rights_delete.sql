-- Deletes nothing, and is refused to a user who may not delete. Filled in for
-- one table at a time.
-- not for: postgres sqlite
DELETE FROM ${event_store_table} WHERE FALSE
