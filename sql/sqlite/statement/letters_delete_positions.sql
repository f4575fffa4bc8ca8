-- All that is left of messages, whatever the keys.
-- ?1 consumer id  ?2 source  ?3 positions
DELETE FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2 AND message_position IN (SELECT value FROM json_each(?3))
