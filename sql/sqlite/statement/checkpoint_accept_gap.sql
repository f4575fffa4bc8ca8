-- Goes on behind a gap in a topic's history, which the rows remember.
-- ?1 consumer id  ?2 source  ?3 topic start
UPDATE ${consumer_checkpoints_table}
   SET incomplete_through = max(coalesce(incomplete_through, 0), ?3),
       position = max(coalesce(position, 0), ?3)
 WHERE consumer_id = ?1 AND source_name = ?2
