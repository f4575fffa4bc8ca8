-- How many messages of the capture topic match, at most ?3 of them.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 event types or NULL  ?5 NULL: there are no aggregates here
-- ?6 partitions or NULL  ?7 key or NULL
SELECT count(*)
  FROM (SELECT 1
          FROM ${event_capture_records_table}
         WHERE global_position > ?1
           AND global_position <= ?2
           AND (?4 IS NULL OR event_type IN (
                    SELECT v FROM JSON_TABLE(?4, '$[*]' COLUMNS (
                        v VARCHAR(255) CHARACTER SET utf8mb4
                            COLLATE utf8mb4_nopad_bin PATH '$')) AS j4))
           AND ?5 IS NULL
           AND (?6 IS NULL OR partition_key IN (
                    SELECT v FROM JSON_TABLE(?6, '$[*]' COLUMNS (
                        v INT PATH '$')) AS j6))
           AND (?7 IS NULL OR message_key = ?7)
         ORDER BY global_position
         LIMIT ?3) AS matching
