-- Where the messages of a topic begin behind a position.
-- ?1 topic  ?2 after position  ?3 up to position
SELECT topic_position
  FROM ${read_model_capture_records_table}
 WHERE topic = ?1
   AND topic_position > ?2
   AND topic_position <= ?3
 ORDER BY topic_position
 LIMIT 1
