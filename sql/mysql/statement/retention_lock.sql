-- Locks the row of a topic: one at a time moves its start.
-- ?1 topic
SELECT topic_start FROM ${high_water_mark_store_table}
 WHERE topic_name = ?1
   FOR UPDATE
