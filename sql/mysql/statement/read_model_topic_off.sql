-- Switches the topic of a projection off; its messages are there still.
-- ?1 topic  ?2 now
UPDATE ${read_model_topics_table}
   SET switched_off_at = ?2
 WHERE topic = ?1
   AND switched_off_at IS NULL
