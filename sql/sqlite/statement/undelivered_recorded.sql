-- What is recorded of the messages within a range, which a page may meet.
-- ?1 consumer id  ?2 source  ?3 after  ?4 up to
SELECT u.id, u.message_position, u.partition_no, u.resolved_key, u.status,
       u.failure_count, u.unresolved, u.failure_reason, u.next_retry_at
  FROM ${consumer_undelivered_messages_table} u
 WHERE u.consumer_id = ?1 AND u.source_name = ?2
   AND u.message_position > ?3 AND u.message_position <= ?4
 ORDER BY u.message_position, u.partition_no, u.key_hash
