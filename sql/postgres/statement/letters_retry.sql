-- A fresh budget, due at once.
-- ?1 ids
UPDATE ${consumer_undelivered_messages_table} AS u
   SET status = 'FAILED', failure_count = 0, next_retry_at = NULL
  FROM unnest(?1::text[]) AS these (id)
 WHERE u.id = these.id::uuid
