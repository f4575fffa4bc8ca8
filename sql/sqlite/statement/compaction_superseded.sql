-- The next messages of a topic, each with the one before it of the same key,
-- which it supersedes (NULL: there is none).
-- ?1 topic  ?2 after position  ?3 up to position  ?4 messages at most
SELECT n.topic_position,
       (SELECT o.topic_position
          FROM ${read_model_capture_records_table} AS o
         WHERE o.topic = ?1
           AND o.read_model_key = n.read_model_key
           AND o.topic_position < n.topic_position
         ORDER BY o.topic_position DESC
         LIMIT 1),
       n.occurred_at
  FROM ${read_model_capture_records_table} AS n
 WHERE n.topic = ?1
   AND n.topic_position > ?2
   AND n.topic_position <= ?3
 ORDER BY n.topic_position
 LIMIT ?4
