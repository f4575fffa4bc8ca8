-- ?1 consumer id  ?2 source, or NULL for all
DELETE FROM ${consumer_checkpoints_table}
 WHERE consumer_id = ?1 AND (?2 IS NULL OR source_name = ?2)
