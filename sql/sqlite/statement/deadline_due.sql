-- What is due in some partitions, in the order in which it fires.
-- ?1 saga type  ?2 now  ?3 partitions  ?4 limit
SELECT id, instance_id, saga_id, name, partition_no, due_at,
       attempts, payload_json, metadata_json, failure_reason,
       next_retry_at
  FROM ${saga_deadlines_table}
 WHERE saga_type = ?1 AND next_retry_at <= ?2
   AND +partition_no IN (SELECT value FROM json_each(?3))
 ORDER BY next_retry_at, id
 LIMIT ?4
