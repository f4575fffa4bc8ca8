-- A consumer's undelivered messages by status.
-- ?1 consumer id
SELECT status, count(*)
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1
 GROUP BY status
 ORDER BY status
