-- The same as read_model_page for one read model, by way of its own index.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 types or NULL  ?5 topic  ?6 partitions or NULL
-- ?7 read model's key  ?8 its partition, which the index does not need
SELECT topic_position AS global_position, id, CAST(NULL AS CHAR), read_model_key, CAST(NULL AS SIGNED),
       CASE WHEN deleted THEN 'read-model.Deleted'
            ELSE 'read-model.Changed' END,
       read_model_revision, payload, metadata, occurred_at, partition_key,
       cascade_depth
  FROM ${read_model_capture_records_table}
       FORCE INDEX (idx_${read_model_capture_records_table}_key)
 WHERE ?8 IS NOT NULL
   AND topic = ?5
   AND read_model_key = ?7
   AND topic_position > ?1
   AND topic_position <= ?2
   AND (?4 IS NULL
        OR CASE WHEN deleted THEN 'read-model.Deleted'
             ELSE 'read-model.Changed' END COLLATE utf8mb4_nopad_bin IN (
            SELECT v FROM JSON_TABLE(?4, '$[*]' COLUMNS (
                v VARCHAR(255) CHARACTER SET utf8mb4
                    COLLATE utf8mb4_nopad_bin PATH '$')) AS j4))
   AND (?6 IS NULL OR partition_key IN (
            SELECT v FROM JSON_TABLE(?6, '$[*]' COLUMNS (
                v INT PATH '$')) AS j6))
