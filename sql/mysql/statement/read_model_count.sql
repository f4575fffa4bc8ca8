-- How many messages of one topic of read models match, at most ?3 of them.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 types or NULL  ?5 topic  ?6 partitions or NULL
-- ?7 read model's key or NULL
SELECT count(*)
  FROM (SELECT 1
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
           AND (?7 IS NULL OR read_model_key = ?7)
         ORDER BY topic_position
         LIMIT ?3) AS matching
