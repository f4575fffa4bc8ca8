-- The next messages of a topic, and which of them are tombstones.
-- ?1 topic  ?2 after position  ?3 up to position  ?4 messages at most
SELECT topic_position, deleted, occurred_at
  FROM ${read_model_capture_records_table}
       FORCE INDEX (uq_${read_model_capture_records_table}_position)
 WHERE topic = ?1
   AND topic_position > ?2
   AND topic_position <= ?3
 ORDER BY topic_position
 LIMIT ?4
