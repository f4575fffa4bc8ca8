-- The topics of read models that are on, and those whose messages are being
-- deleted since they were switched off.
SELECT topic, switched_on_at, filled_at, switched_off_at
  FROM ${read_model_topics_table}
 ORDER BY topic
