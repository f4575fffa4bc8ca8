-- What is due in some partitions, in the order in which it fires.
-- ?1 saga type  ?2 now  ?3 partitions  ?4 limit
SELECT STRAIGHT_JOIN d.id, d.instance_id, d.saga_id, d.name, d.partition_no,
       d.due_at, d.attempts, d.payload_json, d.metadata_json, d.failure_reason,
       d.next_retry_at
  FROM ${saga_deadlines_table} AS d
       FORCE INDEX (idx_${saga_deadlines_table}_next)
 WHERE d.saga_type = ?1 AND d.next_retry_at <= ?2
   AND d.partition_no IN (
        SELECT held.number
          FROM JSON_TABLE(?3, '$[*]' COLUMNS (number INT PATH '$')) AS held)
 ORDER BY d.next_retry_at, d.id
 LIMIT ?4
