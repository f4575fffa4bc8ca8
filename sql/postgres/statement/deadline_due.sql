-- What is due in some partitions, in the order in which it fires.
-- ?1 saga type  ?2 now  ?3 partitions  ?4 limit
SELECT d.id::text, d.instance_id::text, d.saga_id, d.name, d.partition_no,
       d.due_at, d.attempts, d.payload_json, d.metadata_json, d.failure_reason,
       d.next_retry_at
  FROM ${saga_deadlines_table} AS d
 WHERE d.saga_type = ?1::text AND d.next_retry_at <= ?2::timestamptz
   AND d.partition_no = ANY (?3::bigint[])
 ORDER BY d.next_retry_at, d.id
 LIMIT ?4::bigint
