-- All that is left of messages, whatever the keys.
-- ?1 consumer id  ?2 source  ?3 positions
DELETE FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
   AND message_position = ANY (?3::bigint[])
