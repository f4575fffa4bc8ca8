-- Every checkpoint of a consumer's read of a source, with the state of the
-- consumer and whether it has undelivered or skipped messages there; locked
-- until the transaction ends, in the order of partitions. The consumer's row is
-- locked, too, after them: what is not would be given as it was before the wait
-- for a lock.
-- ?1 consumer id  ?2 source
WITH k AS MATERIALIZED (
    SELECT *
      FROM ${consumer_checkpoints_table}
     WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
     ORDER BY partition_no
       FOR UPDATE
)
SELECT k.partition_no, k.position, k.replay_through, k.incomplete_through,
       c.state, c.halt_reason, c.epoch,
       EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text),
       EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text)
  FROM k
  JOIN ${consumers_table} AS c ON c.id = k.consumer_id
 ORDER BY k.partition_no
   FOR NO KEY UPDATE OF c
