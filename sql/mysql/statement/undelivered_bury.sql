-- What waits behind messages that have become their keys' dead letters lies
-- dead with them. The rows are found by a query of its own: only there the
-- server looks a row's key up in the list, instead of going through the list
-- for each row.
-- ?1 consumer id  ?2 source  ?3 keys
UPDATE (
           SELECT w.id
             FROM ${consumer_undelivered_messages_table} AS w
            WHERE w.consumer_id = ?1 AND w.source_name = ?2
              AND w.status = 'WAITING'
              AND w.resolved_key IN (
                   SELECT listed.id
                     FROM JSON_TABLE(?3, '$[*]' COLUMNS (
                              id VARCHAR(255) CHARACTER SET utf8mb4
                                  COLLATE utf8mb4_nopad_bin PATH '$'))
                          AS listed)
       ) AS dead
  STRAIGHT_JOIN ${consumer_undelivered_messages_table} AS u ON u.id = dead.id
   SET u.status = 'DEAD_LETTER_KEY'
