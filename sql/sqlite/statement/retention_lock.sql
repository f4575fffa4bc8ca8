-- The start of a topic. The transaction holds the writer's lock already: one at
-- a time moves it.
-- ?1 topic
SELECT topic_start FROM ${high_water_mark_store_table}
 WHERE topic_name = ?1
