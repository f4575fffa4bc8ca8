-- ?1 consumer id  ?2 source  ?3 key
DELETE FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2
   AND resolved_key = ?3 AND NOT unresolved
