-- Deletes messages of a topic.
-- ?1 topic  ?2 positions
DELETE FROM ${read_model_capture_records_table}
 WHERE topic = ?1::text
   AND topic_position = ANY (?2::bigint[])
