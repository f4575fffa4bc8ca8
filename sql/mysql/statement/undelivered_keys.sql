-- The keys that hold later messages back; what lies dead alone holds nothing.
-- ?1 consumer id  ?2 source
SELECT DISTINCT resolved_key, unresolved
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2 AND status <> 'DEAD_LETTER'
