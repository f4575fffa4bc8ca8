-- How many messages of one topic of read models match, at most ?3 of them.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 types or NULL  ?5 topic  ?6 partitions or NULL
-- ?7 read model's key or NULL
SELECT count(*)
  FROM (SELECT 1
          FROM ${read_model_capture_records_table}
         WHERE topic = ?5::text
           AND topic_position > ?1::bigint
           AND topic_position <= ?2::bigint
           AND (?4::text[] IS NULL
                OR CASE WHEN deleted THEN 'read-model.Deleted'
             ELSE 'read-model.Changed' END = ANY (?4::text[]))
           AND (?6::bigint[] IS NULL OR partition_key = ANY (?6::bigint[]))
           AND (?7::text IS NULL OR read_model_key = ?7::text)
         ORDER BY topic_position
         LIMIT ?3::bigint) AS matching
