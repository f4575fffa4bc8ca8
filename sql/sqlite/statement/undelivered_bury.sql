-- What waits behind messages that have become their keys' dead letters lies
-- dead with them.
-- ?1 consumer id  ?2 source  ?3 keys
UPDATE ${consumer_undelivered_messages_table}
   SET status = 'DEAD_LETTER_KEY'
 WHERE consumer_id = ?1 AND source_name = ?2 AND status = 'WAITING'
   AND resolved_key IN (SELECT value FROM json_each(?3))
