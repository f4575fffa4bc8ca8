-- ?1 ids
DELETE u
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS settled
  JOIN ${consumer_undelivered_messages_table} AS u ON u.id = settled.id
