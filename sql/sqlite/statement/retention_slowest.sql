-- The lowest checkpoint of the consumers that are subscribed to a topic; one
-- that has recorded no position holds all of it. NULL when there is none.
-- ?1 topic
SELECT min(coalesce(position, 0))
  FROM ${consumer_checkpoints_table}
 WHERE source_name = ?1
