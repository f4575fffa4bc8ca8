-- ?1 consumer id  ?2 source, or NULL for all
DELETE FROM ${consumer_checkpoints_table}
 WHERE consumer_id = ?1::text::uuid
   AND (?2::text IS NULL OR source_name = ?2::text)
