-- What waits behind messages that have become their keys' dead letters lies
-- dead with them.
-- ?1 consumer id  ?2 source  ?3 keys
UPDATE ${consumer_undelivered_messages_table} AS u
  JOIN JSON_TABLE(?3, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS dead
    ON u.resolved_key = dead.id
   SET u.status = 'DEAD_LETTER_KEY'
 WHERE u.consumer_id = ?1 AND u.source_name = ?2 AND u.status = 'WAITING'
