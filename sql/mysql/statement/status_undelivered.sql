-- Undelivered messages by consumer and status: how many, how many of
-- these failed themselves, when the oldest was recorded, when the next one is
-- tried again and how many have such a time, and the row that failed last (ids
-- rise with time). Of a message whose keys are not known, which lies in several
-- partitions and counts once, the position.
-- ?1 consumer id, or NULL: of all
SELECT consumer_id, status,
       CASE WHEN unresolved THEN message_position ELSE 0 END AS lone,
       COUNT(*), COUNT(failure_reason), MIN(recorded_at),
       MIN(next_retry_at), COUNT(next_retry_at),
       MAX(CASE WHEN failure_reason IS NOT NULL THEN id END)
  FROM ${consumer_undelivered_messages_table}
 WHERE ?1 IS NULL OR consumer_id = ?1
 GROUP BY consumer_id, status,
       CASE WHEN unresolved THEN message_position ELSE 0 END
