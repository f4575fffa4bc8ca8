-- A fresh budget, due at once, for what halted the consumer.
-- ?1 consumer id
UPDATE ${consumer_undelivered_messages_table}
   SET status = 'FAILED', failure_count = 0, next_retry_at = NULL
 WHERE consumer_id = ?1::text::uuid AND status = 'HALTED'
