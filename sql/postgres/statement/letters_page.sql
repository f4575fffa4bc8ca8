-- A stretch of the undelivered messages of one consumer and topic, as
-- letters_read has them.
-- ?1 consumer id  ?2 status, or NULL
-- ?3 of copies: 0 nothing, 1 what lies before the payload, 2 all
-- ?4 position, or NULL  ?5 whether what only waits behind another is wanted
-- ?6 source  ?7 after position  ?8 up to position
SELECT u.id::text, u.consumer_id::text, c.consumer_type, c.consumer_name, u.source_name,
       u.message_position, u.partition_no, u.resolved_key, u.status,
       u.failure_count, u.next_retry_at, u.failure_reason, u.recorded_at,
       u.unresolved, CASE ?3::bigint
           WHEN 1 THEN
               CASE WHEN position(',"payload' IN left(u.message_copy, 4096)) > 0
                    THEN left(u.message_copy, 4096)
                    ELSE u.message_copy END
           WHEN 2 THEN u.message_copy END
  FROM ${consumer_undelivered_messages_table} AS u
  JOIN ${consumers_table} AS c ON c.id = u.consumer_id
 WHERE u.consumer_id = ?1::text::uuid AND u.source_name = ?6::text
   AND u.message_position > ?7::bigint AND u.message_position <= ?8::bigint
   AND (?2::text IS NULL OR u.status = ?2::text)
   AND (?4::bigint IS NULL OR u.message_position = ?4::bigint)
   AND (?5::boolean OR u.failure_reason IS NOT NULL
        OR u.status NOT IN ('WAITING', 'DEAD_LETTER_KEY'))
 ORDER BY c.consumer_name, c.consumer_type, u.consumer_id, u.source_name,
          u.message_position, u.unresolved, u.resolved_key, u.partition_no
