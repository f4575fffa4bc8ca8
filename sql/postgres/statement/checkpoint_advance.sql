-- Moves the checkpoints of some partitions; a row that is not lower stays, and
-- the caller expects every one to move.
-- ?1 consumer id  ?2 source  ?3 partitions  ?4 position
UPDATE ${consumer_checkpoints_table} AS k
   SET position = ?4::bigint
  FROM unnest(?3::bigint[]) AS moved (partition_no)
 WHERE k.consumer_id = ?1::text::uuid AND k.source_name = ?2::text
   AND k.partition_no = moved.partition_no
   AND (k.position IS NULL OR k.position < ?4::bigint)
