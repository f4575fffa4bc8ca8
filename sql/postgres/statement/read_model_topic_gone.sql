-- Forgets a topic that was switched off, when its messages are deleted.
-- ?1 topic
DELETE FROM ${read_model_topics_table}
 WHERE topic = ?1::text
   AND switched_off_at IS NOT NULL
