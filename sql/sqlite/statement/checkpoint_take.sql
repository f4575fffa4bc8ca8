-- What a batch is applied under: of some partitions the leases and the
-- checkpoints, with the state of the consumer and whether it has undelivered
-- messages in these partitions, or skipped ones, and a topic that is on. The
-- transaction holds the writer's lock already.
-- ?1 consumer id  ?2 source  ?3 partitions
SELECT k.partition_no, k.position, k.replay_through, k.incomplete_through,
       c.state, c.halt_reason, c.epoch,
       EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                WHERE consumer_id = ?1 AND source_name = ?2
                  AND partition_no IN (SELECT value FROM json_each(?3))),
       EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                WHERE consumer_id = ?1 AND source_name = ?2),
       o.instance_id, o.generation,
       EXISTS (SELECT 1 FROM ${read_model_topics_table}
                WHERE topic = c.consumer_name
                  AND c.consumer_type = 'projection'
                  AND switched_off_at IS NULL)
  FROM ${consumers_table} AS c
  JOIN ${consumer_checkpoints_table} AS k ON k.consumer_id = c.id
  JOIN ${partition_ownership_table} AS o
    ON o.consumer_type = c.consumer_type AND o.consumer_name = c.consumer_name
   AND o.partition_no = k.partition_no
 WHERE c.id = ?1 AND k.source_name = ?2
   AND k.partition_no IN (SELECT value FROM json_each(?3))
 ORDER BY k.partition_no
