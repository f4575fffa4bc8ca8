-- Whether the shared table has events of an aggregate type.
-- ?1 aggregate type
SELECT EXISTS (SELECT 1 FROM ${event_store_table} WHERE aggregate_type = ?1)
