-- Rows of failures.
-- ?1 ids
SELECT u.message_position, u.resolved_key, u.status, u.failure_count,
       u.failure_reason, u.recorded_at, u.consumer_id
  FROM ${consumer_undelivered_messages_table} AS u
 WHERE u.id IN (SELECT value FROM json_each(?1))
