-- Whether the topic of a projection is on, and stays so until the transaction
-- ends.
-- ?1 topic
SELECT 1
  FROM ${read_model_topics_table}
 WHERE topic = ?1
   AND switched_off_at IS NULL
  LOCK IN SHARE MODE
