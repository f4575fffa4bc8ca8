-- Makes the checkpoints of partitions 0 to ?3 - 1 where they are missing,
-- under the epoch of the consumer.
-- ?1 consumer id  ?2 source  ?3 number of partitions
INSERT INTO ${consumer_checkpoints_table} (consumer_id, source_name, partition_no, epoch)
SELECT ?1::text::uuid, ?2::text, n,
       (SELECT epoch FROM ${consumers_table} WHERE id = ?1::text::uuid)
  FROM generate_series(0, ?3::bigint - 1) AS n
    ON CONFLICT DO NOTHING
