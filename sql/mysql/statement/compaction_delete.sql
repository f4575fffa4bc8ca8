-- Deletes messages of a topic.
-- ?1 topic  ?2 positions
DELETE r
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (position BIGINT PATH '$')) AS gone
  JOIN ${read_model_capture_records_table} AS r
    ON r.topic = ?1 AND r.topic_position = gone.position
