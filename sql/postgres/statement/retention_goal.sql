-- The newest message of the capture topic that is one too many; none when there
-- are fewer. Walks the index over those that are kept.
-- ?1 topic start  ?2 mark  ?3 how many are kept
SELECT global_position
  FROM ${event_capture_records_table}
 WHERE global_position > ?1::bigint
   AND global_position <= ?2::bigint
 ORDER BY global_position DESC
 LIMIT 1 OFFSET ?3::bigint
