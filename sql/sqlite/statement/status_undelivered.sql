-- Undelivered messages: how many, how many of
-- these failed themselves, when the oldest was recorded, when the next one is
-- tried again and how many have such a time, and the row that failed last (ids
-- rise with time). Of a message whose keys are not known, which lies in several
-- partitions and counts once, the position. Here each row stands for
-- itself: a GROUP BY would sort them all, and the reader adds them up as well.
-- ?1 consumer id, or NULL: of all
SELECT consumer_id, status,
       CASE WHEN unresolved THEN message_position ELSE 0 END,
       1, failure_reason IS NOT NULL, recorded_at,
       next_retry_at, next_retry_at IS NOT NULL,
       CASE WHEN failure_reason IS NOT NULL THEN id END
  FROM ${consumer_undelivered_messages_table}
 WHERE ?1 IS NULL OR consumer_id = ?1
