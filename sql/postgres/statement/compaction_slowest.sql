-- Of the consumers that are subscribed to a topic the one that stands lowest;
-- one that has recorded no position stands at 0.
-- ?1 topic, with read-model: before it
SELECT c.consumer_type, c.consumer_name, min(coalesce(k.position, 0))
  FROM ${consumer_checkpoints_table} AS k
  JOIN ${consumers_table} AS c ON c.id = k.consumer_id
 WHERE k.source_name = ?1::text
 GROUP BY c.consumer_type, c.consumer_name
 ORDER BY 3, 1, 2
 LIMIT 1
