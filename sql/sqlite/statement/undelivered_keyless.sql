-- What is recorded of some messages whose keys are not known.
-- ?1 consumer id  ?2 source  ?3 positions
SELECT u.id, u.message_position, u.partition_no, u.resolved_key, u.status,
       u.failure_count, u.unresolved, u.failure_reason, u.next_retry_at
  FROM ${consumer_undelivered_messages_table} u
 WHERE u.consumer_id = ?1 AND u.source_name = ?2
   AND u.message_position IN (SELECT value FROM json_each(?3))
   AND u.unresolved
 ORDER BY u.message_position, u.partition_no, u.key_hash
