-- Every checkpoint of a consumer, for an operator's verb: locked, so that no
-- processing transaction is under way until the verb's own has ended. The
-- consumer's row comes first: who has it keeps everybody out.
-- ?1 consumer id
SELECT STRAIGHT_JOIN k.source_name, k.partition_no, k.position,
       k.incomplete_through
  FROM ${consumers_table} c
  JOIN ${consumer_checkpoints_table} k ON k.consumer_id = c.id
 WHERE c.id = ?1
 ORDER BY k.source_name, k.partition_no
   FOR UPDATE
