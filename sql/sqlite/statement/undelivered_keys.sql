-- The keys that hold later messages back, and whether these lie dead, too; of
-- messages whose keys are not known, their partitions. What lies dead alone
-- holds nothing, and a message that its partition has not come to yet holds
-- none before it.
-- ?1 consumer id  ?2 source
SELECT u.resolved_key, u.unresolved,
       CASE WHEN u.unresolved THEN u.partition_no ELSE 0 END,
       MAX(CASE WHEN u.status = 'DEAD_LETTER_KEY'
                 AND u.failure_reason IS NOT NULL
                THEN 1 ELSE 0 END)
  FROM ${consumer_undelivered_messages_table} u
  JOIN ${consumer_checkpoints_table} k
    ON k.consumer_id = u.consumer_id AND k.source_name = u.source_name
   AND k.partition_no = u.partition_no AND k.position >= u.message_position
 WHERE u.consumer_id = ?1 AND u.source_name = ?2
   AND u.status <> 'DEAD_LETTER'
 GROUP BY u.resolved_key, u.unresolved,
       CASE WHEN u.unresolved THEN u.partition_no ELSE 0 END
