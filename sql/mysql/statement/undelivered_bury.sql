-- What waits behind messages that have become their keys' dead letters lies
-- dead with them. The rows are gone through once, and the list is a table of
-- its own: the other way around the server reads all rows for each key.
-- ?1 consumer id  ?2 source  ?3 keys
UPDATE ${consumer_undelivered_messages_table} AS u
  STRAIGHT_JOIN (
           SELECT DISTINCT listed.id
             FROM JSON_TABLE(?3, '$[*]' COLUMNS (
                      id VARCHAR(255) CHARACTER SET utf8mb4
                          COLLATE utf8mb4_nopad_bin PATH '$')) AS listed
       ) AS dead
    ON u.resolved_key = dead.id
   SET u.status = 'DEAD_LETTER_KEY'
 WHERE u.consumer_id = ?1 AND u.source_name = ?2 AND u.status = 'WAITING'
