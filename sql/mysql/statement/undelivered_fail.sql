-- ?1 id  ?2 status  ?3 failure count  ?4 reason
UPDATE ${consumer_undelivered_messages_table}
   SET status = ?2, failure_count = ?3, failure_reason = ?4,
       next_retry_at = NULL
 WHERE id = ?1
