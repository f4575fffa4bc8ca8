-- ?1 id  ?2 status  ?3 failure count  ?4 reason  ?5 time of the next retry
UPDATE ${consumer_undelivered_messages_table}
   SET status = ?2::text, failure_count = ?3::bigint,
       failure_reason = ?4::text, next_retry_at = ?5::timestamptz
 WHERE id = ?1::text::uuid
