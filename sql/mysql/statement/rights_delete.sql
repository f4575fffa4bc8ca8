-- Deletes nothing, and is refused to a user who may not delete. Filled in for
-- one table at a time, whose name may be a word of the server.
-- not for: postgres sqlite
DELETE FROM `${event_store_table}` WHERE FALSE
