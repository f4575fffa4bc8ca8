-- What waits behind messages that have become their keys' dead letters lies
-- dead with them.
-- ?1 consumer id  ?2 source  ?3 keys
UPDATE ${consumer_undelivered_messages_table} AS u
   SET status = 'DEAD_LETTER_KEY'
  FROM unnest(?3::text[]) AS dead (resolved_key)
 WHERE u.consumer_id = ?1::text::uuid AND u.source_name = ?2::text
   AND u.status = 'WAITING' AND u.resolved_key = dead.resolved_key
