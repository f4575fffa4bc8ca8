-- What is recorded of some messages whose keys are not known.
-- ?1 consumer id  ?2 source  ?3 positions
SELECT u.id::text, u.message_position, u.partition_no, u.resolved_key, u.status,
       u.failure_count, u.unresolved, u.failure_reason, u.next_retry_at
  FROM ${consumer_undelivered_messages_table} AS u
 WHERE u.consumer_id = ?1::text::uuid AND u.source_name = ?2::text
   AND u.message_position = ANY (?3::bigint[])
   AND u.unresolved
 ORDER BY u.message_position, u.partition_no, u.key_hash
