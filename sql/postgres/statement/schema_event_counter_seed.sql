-- The schema script makes the sequence, which needs no row. One that is not
-- there is told here.
SELECT '${event_store_global_position_table}'::regclass
