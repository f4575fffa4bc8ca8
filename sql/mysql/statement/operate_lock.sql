-- Every checkpoint of a consumer, for an operator's verb: locked, so that no
-- processing transaction is under way until the verb's own has ended.
-- ?1 consumer id
SELECT k.source_name, k.partition_no, k.position, k.incomplete_through
  FROM ${consumer_checkpoints_table} k
  JOIN ${consumers_table} c ON c.id = k.consumer_id
 WHERE k.consumer_id = ?1
 ORDER BY k.source_name, k.partition_no
   FOR UPDATE
