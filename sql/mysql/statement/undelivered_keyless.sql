-- What is recorded of some messages whose keys are not known. The
-- list comes first: each position of it is looked up in the index.
-- ?1 consumer id  ?2 source  ?3 positions
SELECT u.id, u.message_position, u.partition_no, u.resolved_key, u.status,
       u.failure_count, u.unresolved, u.failure_reason, u.next_retry_at
  FROM JSON_TABLE(?3, '$[*]' COLUMNS (position BIGINT PATH '$')) AS listed
       STRAIGHT_JOIN ${consumer_undelivered_messages_table} AS u
       ON u.message_position = listed.position
 WHERE u.consumer_id = ?1 AND u.source_name = ?2
   AND u.unresolved
 ORDER BY u.message_position, u.partition_no, u.key_hash
