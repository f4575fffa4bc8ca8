-- Makes the checkpoints of partitions 0 to ?3 - 1 where they are missing,
-- under the epoch of the consumer.
-- ?1 consumer id  ?2 source  ?3 number of partitions
WITH RECURSIVE numbers (n) AS (
    SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?3
)
INSERT INTO ${consumer_checkpoints_table} (consumer_id, source_name, partition_no, epoch)
SELECT ?1, ?2, n, (SELECT epoch FROM ${consumers_table} WHERE id = ?1)
  FROM numbers WHERE true
    ON CONFLICT DO NOTHING
