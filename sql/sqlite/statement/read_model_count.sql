-- How many messages of one topic of read models match, at most ?3 of them.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 types or NULL  ?5 topic  ?6 partitions or NULL
-- ?7 read model's key or NULL
SELECT count(*)
  FROM (SELECT 1
          FROM ${read_model_capture_records_table}
         WHERE topic = ?5
           AND topic_position > ?1
           AND topic_position <= ?2
           AND (?4 IS NULL
                OR CASE WHEN deleted THEN 'read-model.Deleted'
             ELSE 'read-model.Changed' END IN (SELECT value FROM json_each(?4)))
           AND (?6 IS NULL OR partition_key IN (SELECT value FROM json_each(?6)))
           AND (?7 IS NULL OR read_model_key = ?7)
         ORDER BY topic_position
         LIMIT ?3) AS matching
