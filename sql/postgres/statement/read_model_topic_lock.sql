-- Locks the checkpoints of a projection, in the order its batches lock them:
-- while they are held, nobody applies for it.
-- ?1 projection
SELECT count(*)
  FROM (SELECT 1
          FROM ${consumer_checkpoints_table} AS k
          JOIN ${consumers_table} AS c ON c.id = k.consumer_id
         WHERE c.consumer_type = 'projection'
           AND c.consumer_name = ?1::text
         ORDER BY k.source_name, k.partition_no
           FOR UPDATE OF k) AS held
