-- The channel on which hosts of these tables are told that there is something
-- to look at. What appends tells it, too (schema/18-append.sql).
-- not for: sqlite mysql
SELECT 'moontide_' || '${high_water_mark_store_table}'::regclass::oid
