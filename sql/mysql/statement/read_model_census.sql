-- How many changes and how many deletes lie in a stretch of one topic of read
-- models, and where the first of them is; looks at ?3 messages at most.
-- ?1 after position  ?2 up to position  ?3 limit  ?4 topic
SELECT CASE WHEN deleted THEN 'read-model.Deleted'
            ELSE 'read-model.Changed' END,
       CAST(NULL AS CHAR), COUNT(*), MIN(topic_position)
  FROM (SELECT deleted, topic_position
          FROM ${read_model_capture_records_table}
               FORCE INDEX (uq_${read_model_capture_records_table}_position)
         WHERE topic = ?4
           AND topic_position > ?1
           AND topic_position <= ?2
         ORDER BY topic_position
         LIMIT ?3) AS ahead
 GROUP BY deleted
