-- The newest failure of a consumer; the halting message before the others.
-- ?1 consumer id
SELECT message_position, resolved_key, status, failure_count, failure_reason,
       recorded_at
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1::text::uuid AND failure_reason IS NOT NULL
 ORDER BY CASE status WHEN 'HALTED' THEN 0 ELSE 1 END, recorded_at DESC,
          message_position DESC
 LIMIT 1
