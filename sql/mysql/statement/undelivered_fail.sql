-- ?1 id  ?2 status  ?3 failure count  ?4 reason  ?5 time of the next retry
UPDATE ${consumer_undelivered_messages_table}
   SET status = ?2, failure_count = ?3,
       failure_reason = ?4, next_retry_at = ?5
 WHERE id = ?1
