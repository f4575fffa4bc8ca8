-- Whether the topic of a projection is on: no row, or the key of the last read
-- model that was filled in, and when the last of all was.
-- ?1 topic
SELECT filled_through, filled_at
  FROM ${read_model_topics_table}
 WHERE topic = ?1
   AND switched_off_at IS NULL
