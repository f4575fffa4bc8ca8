-- What may be tried now in some partitions, in position order: of each key,
-- everything from its first row on, unless the first that failed waits for an
-- operator, a start or a later time; a message whose keys are not known is held
-- in its own partition only. What lies dead alone is no part of it; what lies
-- dead behind a dead letter that is gone or was retried is. A message that its
-- partition has not come to yet has others before it. The last column: whether
-- it waits for these itself, and is there to hold what lies behind it.
-- ?1 consumer id  ?2 source  ?3 now  ?4 limit  ?5 partitions
SELECT u.id, u.message_position, u.partition_no, u.resolved_key,
       u.status, u.failure_count, u.unresolved, u.message_copy,
       u.failure_reason,
       u.failure_reason IS NOT NULL
       AND (u.status IN ('HALTED', 'DEAD_LETTER_KEY')
            OR u.status = 'FAILED' AND u.next_retry_at IS NOT NULL
               AND u.next_retry_at > ?3)
  FROM ${consumer_undelivered_messages_table} u
       FORCE INDEX (uq_${consumer_undelivered_messages_table})
  JOIN ${consumer_checkpoints_table} k
    ON k.consumer_id = u.consumer_id AND k.source_name = u.source_name
   AND k.partition_no = u.partition_no AND k.position >= u.message_position
 WHERE u.consumer_id = ?1 AND u.source_name = ?2
   AND u.partition_no IN (
        SELECT held.number
          FROM JSON_TABLE(?5, '$[*]' COLUMNS (number INT PATH '$')) AS held)
   AND u.status <> 'DEAD_LETTER'
   AND (u.resolved_key, CASE WHEN u.unresolved THEN u.partition_no ELSE -1 END)
       NOT IN (
        SELECT h.resolved_key,
               CASE WHEN h.unresolved THEN h.partition_no ELSE -1 END
          FROM ${consumer_undelivered_messages_table} h
               FORCE INDEX (uq_${consumer_undelivered_messages_table})
         WHERE h.consumer_id = ?1 AND h.source_name = ?2
           AND h.failure_reason IS NOT NULL AND h.status <> 'DEAD_LETTER'
         GROUP BY h.resolved_key,
               CASE WHEN h.unresolved THEN h.partition_no ELSE -1 END
        HAVING MIN(h.message_position) = MIN(
               CASE WHEN h.status IN ('HALTED', 'DEAD_LETTER_KEY')
                         OR h.status = 'FAILED' AND h.next_retry_at > ?3
                    THEN h.message_position END))
 ORDER BY u.message_position, u.partition_no, u.key_hash
 LIMIT ?4
