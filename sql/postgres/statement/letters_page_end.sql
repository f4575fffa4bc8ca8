-- The position at which a stretch of so many rows of undelivered messages ends; no
-- row when there are not so many.
-- ?1 consumer id  ?2 source  ?3 after position  ?4 up to position
-- ?5 how many rows more than one  ?6 status, or NULL
SELECT message_position
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
   AND message_position > ?3::bigint AND message_position <= ?4::bigint
   AND (?6::text IS NULL OR status = ?6::text)
 ORDER BY message_position
 LIMIT 1 OFFSET ?5::bigint
