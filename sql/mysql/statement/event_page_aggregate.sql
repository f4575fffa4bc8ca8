-- The same as event_page for one aggregate id, by way of its partition.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 event types or NULL  ?5 aggregate types or NULL  ?6 partitions or NULL
-- ?7 aggregate id  ?8 its partition
SELECT global_position, id, aggregate_type, aggregate_id, sequence_no,
       event_type, event_revision, payload, metadata, occurred_at,
       partition_key
  FROM ${event_store_table}
       FORCE INDEX (idx_${event_store_table}_partition)
 WHERE partition_key = ?8
   AND global_position > ?1
   AND global_position <= ?2
   AND aggregate_id = ?7
   AND (?4 IS NULL OR event_type IN (
            SELECT v FROM JSON_TABLE(?4, '$[*]' COLUMNS (
                v VARCHAR(255) CHARACTER SET utf8mb4
                    COLLATE utf8mb4_nopad_bin PATH '$')) AS j4))
   AND (?5 IS NULL OR aggregate_type IN (
            SELECT v FROM JSON_TABLE(?5, '$[*]' COLUMNS (
                v VARCHAR(255) CHARACTER SET utf8mb4
                    COLLATE utf8mb4_nopad_bin PATH '$')) AS j5))
   AND (?6 IS NULL OR partition_key IN (
            SELECT v FROM JSON_TABLE(?6, '$[*]' COLUMNS (
                v INT PATH '$')) AS j6))
