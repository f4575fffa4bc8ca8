-- How many messages of one key were not delivered, those included of which
-- nobody could tell the keys.
-- ?1 consumer id  ?2 source  ?3 key  ?4 its partition
SELECT count(*)
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2
   AND partition_no = ?4
   AND (resolved_key = ?3 OR unresolved = 1)
