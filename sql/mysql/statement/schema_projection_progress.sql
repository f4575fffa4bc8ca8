-- How far a projection has read; NULL when it has not begun.
-- ?1 name of the projection
SELECT max(k.position)
  FROM ${consumer_checkpoints_table} k
  JOIN ${consumers_table} c ON c.id = k.consumer_id
 WHERE c.consumer_type = 'projection' AND c.consumer_name = ?1
