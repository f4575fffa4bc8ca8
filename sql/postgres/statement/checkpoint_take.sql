-- Locks what a batch is applied under: of some partitions the leases and the
-- checkpoints, in the order of partitions. With them come the state of the
-- consumer, whether it has undelivered messages in these partitions, or
-- skipped ones, and whether it has a topic that is on; that is as old as the
-- statement, which may have waited for a lock, so consumer_still asks again at
-- the end of the batch.
-- ?1 consumer id  ?2 source  ?3 partitions
SELECT k.partition_no, k.position, k.replay_through, k.incomplete_through,
       c.state, c.halt_reason, c.epoch,
       EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
                  AND partition_no = ANY (?3::bigint[])),
       EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text),
       o.instance_id, o.generation,
       EXISTS (SELECT 1 FROM ${read_model_topics_table} AS t
                WHERE t.topic = c.consumer_name
                  AND c.consumer_type = 'projection'
                  AND t.switched_off_at IS NULL)
  FROM ${consumers_table} AS c
  JOIN ${consumer_checkpoints_table} AS k ON k.consumer_id = c.id
  JOIN ${partition_ownership_table} AS o
    ON o.consumer_type = c.consumer_type AND o.consumer_name = c.consumer_name
   AND o.partition_no = k.partition_no
 WHERE c.id = ?1::text::uuid AND k.source_name = ?2::text
   AND k.partition_no = ANY (?3::bigint[])
 ORDER BY k.partition_no
   FOR UPDATE OF k, o
