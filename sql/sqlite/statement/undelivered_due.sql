-- What may be tried now: failed messages that are due and everything that
-- waits behind them, in position order.
-- ?1 consumer id  ?2 source  ?3 now  ?4 limit
SELECT u.id, u.message_position, u.partition_no, u.resolved_key, u.status,
       u.failure_count, u.unresolved, u.message_copy
  FROM ${consumer_undelivered_messages_table} u
 WHERE u.consumer_id = ?1 AND u.source_name = ?2
   AND u.status IN ('FAILED', 'WAITING')
   AND u.resolved_key IN (
        SELECT f.resolved_key
          FROM ${consumer_undelivered_messages_table} f
         WHERE f.consumer_id = ?1 AND f.source_name = ?2
           AND f.status = 'FAILED'
           AND (f.next_retry_at IS NULL OR f.next_retry_at <= ?3))
 ORDER BY u.message_position, u.partition_no, u.key_hash
 LIMIT ?4
