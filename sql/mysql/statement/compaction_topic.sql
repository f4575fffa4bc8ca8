-- The next topic of read models that holds messages, by name: how far it is
-- compacted (NULL: it never was), and up to where it can be read.
-- ?1 the topic before it
SELECT t.topic, c.compacted_through, m.val
  FROM (SELECT min(topic) AS topic
          FROM ${read_model_capture_records_table}
         WHERE topic > ?1) AS t
  LEFT JOIN ${topic_compaction_table} AS c
    ON c.topic_name = concat('read-model:', t.topic)
  LEFT JOIN ${read_model_capture_positions_table} AS m ON m.topic = t.topic
 WHERE t.topic IS NOT NULL
