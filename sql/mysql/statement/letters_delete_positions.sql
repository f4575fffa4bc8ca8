-- All that is left of messages, whatever the keys.
-- ?1 consumer id  ?2 source  ?3 positions
DELETE u
  FROM JSON_TABLE(?3, '$[*]' COLUMNS (number BIGINT PATH '$')) AS these
  JOIN ${consumer_undelivered_messages_table} AS u
    ON u.consumer_id = ?1 AND u.source_name = ?2
   AND u.message_position = these.number
