-- Moves the checkpoints of some partitions; a row that is not lower stays, and
-- the caller expects every one to move.
-- ?1 consumer id  ?2 source  ?3 partitions  ?4 position
UPDATE ${consumer_checkpoints_table}
   SET position = ?4
 WHERE consumer_id = ?1 AND source_name = ?2
   AND partition_no IN
       (SELECT p.n
          FROM JSON_TABLE(?3, '$[*]' COLUMNS (n INT PATH '$')) AS p)
   AND (position IS NULL OR position < ?4)
