-- How many messages whose keys are not known hold partitions, and how many
-- partitions, by consumer.
-- ?1 consumer id, or NULL: of all
SELECT consumer_id::text, COUNT(DISTINCT message_position),
       COUNT(DISTINCT partition_no), MIN(message_position)
  FROM ${consumer_undelivered_messages_table}
 WHERE unresolved AND status <> 'DEAD_LETTER'
   AND failure_reason IS NOT NULL
   AND (?1::text IS NULL OR consumer_id = ?1::text::uuid)
 GROUP BY consumer_id
