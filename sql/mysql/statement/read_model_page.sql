-- Messages of one topic of read models in the columns of event_page and, behind
-- them, the depth of the cascade; topic/event_page.c appends the order by
-- position and the limit. Left to itself the server may walk the topic from its
-- first message on.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 types or NULL  ?5 topic  ?6 partitions or NULL
SELECT topic_position AS global_position, id, CAST(NULL AS CHAR), read_model_key, CAST(NULL AS SIGNED),
       CASE WHEN deleted THEN 'read-model.Deleted'
            ELSE 'read-model.Changed' END,
       read_model_revision, payload, metadata, occurred_at, partition_key,
       cascade_depth
  FROM ${read_model_capture_records_table}
       FORCE INDEX (uq_${read_model_capture_records_table}_position)
 WHERE topic = ?5
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
