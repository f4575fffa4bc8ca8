-- A stretch of the undelivered messages of one consumer and topic, as
-- letters_read has them.
-- ?1 consumer id  ?2 status, or NULL
-- ?3 of copies: 0 nothing, 1 what lies before the payload, 2 all
-- ?4 position, or NULL  ?5 whether what only waits behind another is wanted
-- ?6 source  ?7 after position  ?8 up to position
-- Sorted without the copies, which would all be held at once otherwise.
WITH sorted AS MATERIALIZED (
    SELECT u.id, u.consumer_id, c.consumer_type, c.consumer_name, u.source_name,
           u.message_position, u.partition_no, u.resolved_key, u.status,
           u.failure_count, u.next_retry_at, u.failure_reason, u.recorded_at,
           u.unresolved,
           row_number() OVER (
               ORDER BY c.consumer_name, c.consumer_type, u.consumer_id,
                        u.source_name, u.message_position, u.unresolved,
                        u.resolved_key, u.partition_no) AS place
      FROM ${consumer_undelivered_messages_table} u
      JOIN ${consumers_table} c ON c.id = u.consumer_id
     WHERE u.consumer_id = ?1 AND u.source_name = ?6
       AND u.message_position > ?7 AND u.message_position <= ?8
       AND (?2 IS NULL OR u.status = ?2)
       AND (?4 IS NULL OR u.message_position = ?4)
       AND (?5 OR u.failure_reason IS NOT NULL
            OR u.status NOT IN ('WAITING', 'DEAD_LETTER_KEY'))
     ORDER BY place
)
SELECT s.id, s.consumer_id, s.consumer_type, s.consumer_name, s.source_name,
       s.message_position, s.partition_no, s.resolved_key, s.status,
       s.failure_count, s.next_retry_at, s.failure_reason, s.recorded_at,
       s.unresolved, CASE ?3
           WHEN 1 THEN
               CASE WHEN instr(moontide_head('${consumer_undelivered_messages_table}',
                                             'message_copy', u.rowid, 4096),
                               ',"payload') > 0
                    THEN moontide_head('${consumer_undelivered_messages_table}',
                                       'message_copy', u.rowid, 4096)
                    ELSE u.message_copy END
           WHEN 2 THEN u.message_copy END
  FROM sorted s -- SQLite keeps the order of a CROSS JOIN's loops
 CROSS JOIN ${consumer_undelivered_messages_table} u
 WHERE u.id = s.id
