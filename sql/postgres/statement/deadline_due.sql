-- What is due in some partitions, in the order in which it fires.
-- ?1 saga type  ?2 now  ?3 partitions  ?4 limit
SELECT id::text, instance_id::text, saga_id, name, partition_no, due_at,
       attempts, payload_json, metadata_json, failure_reason,
       next_retry_at
  FROM ${saga_deadlines_table}
 WHERE saga_type = ?1::text AND next_retry_at <= ?2::timestamptz
   AND partition_no = ANY (?3::bigint[])
 ORDER BY next_retry_at, id
 LIMIT ?4::bigint
