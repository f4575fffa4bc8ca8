-- The replay of a rebuild is over.
-- ?1 consumer id  ?2 source
UPDATE ${consumer_checkpoints_table}
   SET replay_through = NULL
 WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
