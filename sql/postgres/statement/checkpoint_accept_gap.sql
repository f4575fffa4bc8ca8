-- Goes on behind a gap in a topic's history, which the rows remember.
-- ?1 consumer id  ?2 source  ?3 topic start
UPDATE ${consumer_checkpoints_table}
   SET incomplete_through = greatest(incomplete_through, ?3::bigint),
       position = greatest(position, ?3::bigint)
 WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
