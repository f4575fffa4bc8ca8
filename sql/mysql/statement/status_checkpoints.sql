-- How far a consumer has read each partition of each source.
-- ?1 consumer id
SELECT source_name, partition_no, position
  FROM ${consumer_checkpoints_table}
 WHERE consumer_id = ?1
 ORDER BY source_name, partition_no
