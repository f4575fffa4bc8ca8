-- When the next message of some partitions is tried again, NULL when none is to
-- be. One that its partition has not come to yet is not. What has a time has
-- failed, so it has a reason, too.
-- ?1 consumer id  ?2 source  ?3 partitions
SELECT MIN(u.next_retry_at)
  FROM ${consumer_undelivered_messages_table} u
       FORCE INDEX (uq_${consumer_undelivered_messages_table})
  JOIN ${consumer_checkpoints_table} k
    ON k.consumer_id = u.consumer_id AND k.source_name = u.source_name
   AND k.partition_no = u.partition_no AND k.position >= u.message_position
 WHERE u.consumer_id = ?1 AND u.source_name = ?2
   AND u.status = 'FAILED' AND u.failure_reason IS NOT NULL
   AND u.partition_no IN (
        SELECT held.number
          FROM JSON_TABLE(?3, '$[*]' COLUMNS (number INT PATH '$')) AS held)
