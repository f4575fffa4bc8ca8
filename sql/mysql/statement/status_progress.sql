-- How far consumers have read each partition of each source, how far a rebuild
-- replays, and up to where history was missing.
-- ?1 consumer id, or NULL: of all
SELECT consumer_id, source_name, partition_no, position,
       replay_through, incomplete_through
  FROM ${consumer_checkpoints_table}
 WHERE ?1 IS NULL OR consumer_id = ?1
 ORDER BY consumer_id, source_name, partition_no
