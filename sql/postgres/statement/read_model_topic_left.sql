-- Messages of a topic that was switched off, the first ones. Of one that is on
-- again meanwhile there are none: all that these were are deleted before.
-- ?1 topic  ?2 messages at most
SELECT r.topic_position
  FROM ${read_model_capture_records_table} AS r
 WHERE r.topic = ?1::text
   AND EXISTS (SELECT 1 FROM ${read_model_topics_table} AS t
                WHERE t.topic = ?1::text AND t.switched_off_at IS NOT NULL)
 ORDER BY r.topic_position
 LIMIT ?2::bigint
