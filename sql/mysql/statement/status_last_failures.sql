-- Rows of failures.
-- ?1 ids
SELECT u.message_position, u.resolved_key, u.status, u.failure_count,
       u.failure_reason, u.recorded_at, u.consumer_id
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS these
  JOIN ${consumer_undelivered_messages_table} AS u ON u.id = these.id
