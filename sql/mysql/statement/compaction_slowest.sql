-- Of the consumers that are subscribed to a topic the one that stands lowest;
-- one that has recorded no position stands at 0. Checkpoints are looked up by
-- consumer, of which there are few.
-- ?1 topic, with read-model: before it
SELECT c.consumer_type, c.consumer_name, min(coalesce(k.position, 0))
  FROM ${consumers_table} AS c
  STRAIGHT_JOIN ${consumer_checkpoints_table} AS k FORCE INDEX (PRIMARY)
    ON k.consumer_id = c.id AND k.source_name = ?1
 GROUP BY c.consumer_type, c.consumer_name
 ORDER BY 3, 1, 2
 LIMIT 1
