-- A consumer's undelivered messages that have a reason, in position order. One
-- whose keys are not known lies in several partitions and is given once.
-- ?1 consumer id  ?2 limit
SELECT message_position, resolved_key, status, failure_count, failure_reason,
       min(message_copy)
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1::text::uuid AND failure_reason IS NOT NULL
 GROUP BY message_position, resolved_key, status, failure_count, failure_reason
 ORDER BY message_position, resolved_key
 LIMIT ?2::bigint
