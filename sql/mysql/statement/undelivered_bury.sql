-- What waits behind a message that has become its key's dead letter lies dead
-- with it.
-- ?1 consumer id  ?2 source  ?3 key
UPDATE ${consumer_undelivered_messages_table}
   SET status = 'DEAD_LETTER_KEY'
 WHERE consumer_id = ?1 AND source_name = ?2
   AND resolved_key = ?3 AND status = 'WAITING'
