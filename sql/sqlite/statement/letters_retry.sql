-- A fresh budget, due at once.
-- ?1 ids
UPDATE ${consumer_undelivered_messages_table}
   SET status = 'FAILED', failure_count = 0, next_retry_at = NULL
 WHERE id IN (SELECT value FROM json_each(?1))
