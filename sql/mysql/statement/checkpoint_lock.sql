-- Locks every checkpoint of a consumer's read of a source, and gives them with
-- the state of the consumer and whether it has undelivered or skipped messages
-- there. The consumer's row comes first: who has it keeps everybody out.
-- ?1 consumer id  ?2 source
SELECT STRAIGHT_JOIN k.partition_no, k.position, k.replay_through,
       k.incomplete_through, c.state, c.halt_reason, c.epoch,
       EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                WHERE consumer_id = ?1 AND source_name = ?2),
       EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                WHERE consumer_id = ?1 AND source_name = ?2)
  FROM ${consumers_table} c
  JOIN ${consumer_checkpoints_table} k
    ON k.consumer_id = c.id AND k.source_name = ?2
 WHERE c.id = ?1
 ORDER BY k.partition_no
   FOR UPDATE
