-- The counter of the topic of a projection; one that is behind what is stored is
-- moved past it.
-- not for: postgres
-- ?1 topic
INSERT INTO ${read_model_capture_positions_table} (topic, val)
SELECT ?1, coalesce(max(topic_position), 0)
  FROM ${read_model_capture_records_table}
 WHERE topic = ?1
    ON CONFLICT (topic) DO UPDATE SET val = max(val, excluded.val)
