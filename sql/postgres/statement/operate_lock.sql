-- Every checkpoint of a consumer, for an operator's verb: locked, so that no
-- processing transaction is under way until the verb's own has ended. The
-- consumer's row is locked after them.
-- ?1 consumer id
WITH k AS MATERIALIZED (
    SELECT *
      FROM ${consumer_checkpoints_table}
     WHERE consumer_id = ?1::text::uuid
     ORDER BY source_name, partition_no
       FOR UPDATE
)
SELECT k.source_name, k.partition_no, k.position, k.incomplete_through
  FROM k
  JOIN ${consumers_table} AS c ON c.id = k.consumer_id
 ORDER BY k.source_name, k.partition_no
   FOR NO KEY UPDATE OF c
