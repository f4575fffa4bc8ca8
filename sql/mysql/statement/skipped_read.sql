-- On a topic with one position space a skip holds in every partition.
-- ?1 consumer id  ?2 source  ?3 after  ?4 up to
SELECT message_position, resolved_key, every_key
  FROM ${consumer_skipped_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2
   AND message_position > ?3 AND message_position <= ?4
