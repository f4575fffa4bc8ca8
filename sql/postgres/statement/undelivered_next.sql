-- When the next message of some partitions is tried again, NULL when none is to
-- be. One that its partition has not come to yet is not. What has a time has
-- failed, so it has a reason, too.
-- ?1 consumer id  ?2 source  ?3 partitions
SELECT MIN(u.next_retry_at)
  FROM ${consumer_undelivered_messages_table} AS u
  JOIN ${consumer_checkpoints_table} AS k
    ON k.consumer_id = u.consumer_id AND k.source_name = u.source_name
   AND k.partition_no = u.partition_no AND k.position >= u.message_position
 WHERE u.consumer_id = ?1::text::uuid AND u.source_name = ?2::text
   AND u.status = 'FAILED' AND u.failure_reason IS NOT NULL
   AND u.partition_no = ANY (?3::bigint[])
