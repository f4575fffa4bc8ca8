-- Whether the shared table has events of an aggregate type.
-- ?1 aggregate type
SELECT CASE WHEN EXISTS (SELECT 1 FROM ${event_store_table}
                          WHERE aggregate_type = ?1::text)
       THEN 1 ELSE 0 END
