-- A read that begins where its topic ends, and not with its first message:
-- checkpoints that have recorded no position yet.
-- ?1 consumer id  ?2 source  ?3 position
UPDATE ${consumer_checkpoints_table}
   SET position = ?3::bigint
 WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
   AND position IS NULL
