-- Skips that nobody can meet any more.
-- ?1 consumer id  ?2 source  ?3 position that all partitions have passed
DELETE FROM ${consumer_skipped_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2
   AND message_position <= ?3
   AND message_position NOT IN (
        SELECT u.message_position
          FROM ${consumer_undelivered_messages_table} u
         WHERE u.consumer_id = ?1 AND u.source_name = ?2)
