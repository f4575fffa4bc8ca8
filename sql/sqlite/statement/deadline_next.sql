-- When the first deadline of some partitions is due.
-- ?1 saga type  ?2 partitions
SELECT next_retry_at
  FROM ${saga_deadlines_table}
 WHERE saga_type = ?1 AND next_retry_at IS NOT NULL
   AND +partition_no IN (SELECT value FROM json_each(?2))
 ORDER BY next_retry_at, id
 LIMIT 1
