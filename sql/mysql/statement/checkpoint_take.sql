-- Locks what a batch is applied under: of some partitions the leases and the
-- checkpoints, and the consumer's row, which others that apply for the consumer
-- have locked, too; who changes its state waits. With them come that state and
-- whether the consumer has undelivered messages in these partitions, or skipped
-- ones, and whether it has a topic that is on.
-- ?1 consumer id  ?2 source  ?3 partitions
SELECT STRAIGHT_JOIN k.partition_no, k.position, k.replay_through,
       k.incomplete_through, c.state, c.halt_reason, c.epoch,
       EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table} u
                WHERE u.consumer_id = ?1 AND u.source_name = ?2
                  AND u.partition_no IN (
                      SELECT q.number
                        FROM JSON_TABLE(?3, '$[*]' COLUMNS (
                                 number INT PATH '$')) AS q)),
       EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                WHERE consumer_id = ?1 AND source_name = ?2),
       o.instance_id, o.generation, t.topic IS NOT NULL
  FROM ${consumers_table} AS c
  JOIN JSON_TABLE(?3, '$[*]' COLUMNS (number INT PATH '$')) AS p
  JOIN ${partition_ownership_table} AS o
    ON o.consumer_type = c.consumer_type AND o.consumer_name = c.consumer_name
   AND o.partition_no = p.number
  JOIN ${consumer_checkpoints_table} AS k
    ON k.consumer_id = ?1 AND k.source_name = ?2
   AND k.partition_no = p.number
  LEFT JOIN ${read_model_topics_table} AS t
    ON t.topic = c.consumer_name AND c.consumer_type = 'projection'
   AND t.switched_off_at IS NULL
 WHERE c.id = ?1
 ORDER BY k.partition_no
  LOCK IN SHARE MODE
