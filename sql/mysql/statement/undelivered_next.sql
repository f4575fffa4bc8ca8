-- When the next message is tried again, NULL when none is to be.
-- ?1 consumer id  ?2 source
SELECT MIN(next_retry_at)
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2 AND status = 'FAILED'
