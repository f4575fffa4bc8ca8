-- Rows of failures.
-- ?1 ids
SELECT u.message_position, u.resolved_key, u.status, u.failure_count,
       u.failure_reason, u.recorded_at, u.consumer_id::text
  FROM unnest(?1::text[]) AS these (id)
  JOIN ${consumer_undelivered_messages_table} AS u ON u.id = these.id::uuid
