-- Of the consumers that are subscribed to a topic the one that stands lowest;
-- one that has recorded no position stands at 0. Checkpoints are looked up by
-- consumer, of which there are few.
-- ?1 topic, with read-model: before it
SELECT c.consumer_type, c.consumer_name, low.position
  FROM ${consumers_table} AS c
 CROSS JOIN LATERAL (
        SELECT min(coalesce(k.position, 0)) AS position
          FROM ${consumer_checkpoints_table} AS k
         WHERE k.consumer_id = c.id AND k.source_name = ?1::text) AS low
 WHERE low.position IS NOT NULL
 ORDER BY 3, 1, 2
 LIMIT 1
