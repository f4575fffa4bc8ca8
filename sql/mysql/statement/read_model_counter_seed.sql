-- The counter of the topic of a projection; one that is behind what is stored is
-- moved past it.
-- not for: postgres
-- ?1 topic
INSERT INTO ${read_model_capture_positions_table} (topic, val)
SELECT * FROM (
    SELECT ?1 AS topic, coalesce(max(topic_position), 0) AS val
      FROM ${read_model_capture_records_table}
     WHERE topic = ?1) AS stored
    ON DUPLICATE KEY UPDATE
       val = greatest(${read_model_capture_positions_table}.val, VALUES(val))
