-- The topics that have a mark.
SELECT topic_name
  FROM ${high_water_mark_store_table}
 ORDER BY topic_name
