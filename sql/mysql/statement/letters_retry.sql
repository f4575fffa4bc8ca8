-- A fresh budget, due at once.
-- ?1 ids
UPDATE ${consumer_undelivered_messages_table} u
  JOIN JSON_TABLE(?1, '$[*]' COLUMNS (
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS these
    ON u.id = these.id
   SET u.status = 'FAILED', u.failure_count = 0, u.next_retry_at = NULL
