-- When the first deadline of some partitions is due.
-- ?1 saga type  ?2 partitions
SELECT STRAIGHT_JOIN d.next_retry_at
  FROM ${saga_deadlines_table} AS d
       FORCE INDEX (idx_${saga_deadlines_table}_next)
 WHERE d.saga_type = ?1 AND d.next_retry_at IS NOT NULL
   AND d.partition_no IN (
        SELECT held.number
          FROM JSON_TABLE(?2, '$[*]' COLUMNS (number INT PATH '$')) AS held)
 ORDER BY d.next_retry_at, d.id
 LIMIT 1
