-- Every checkpoint of a consumer's read of a source, with the state of the
-- consumer and whether it has undelivered or skipped messages there. The
-- transaction holds the writer's lock already.
-- ?1 consumer id  ?2 source
SELECT k.partition_no, k.position, k.replay_through, k.incomplete_through,
       c.state, c.halt_reason, c.epoch,
       EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                WHERE consumer_id = ?1 AND source_name = ?2),
       EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                WHERE consumer_id = ?1 AND source_name = ?2)
  FROM ${consumer_checkpoints_table} k
  JOIN ${consumers_table} c ON c.id = k.consumer_id
 WHERE k.consumer_id = ?1 AND k.source_name = ?2
 ORDER BY k.partition_no
