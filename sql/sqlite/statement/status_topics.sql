-- The topics that have a mark, and those of read models, which have none.
SELECT topic_name
  FROM ${high_water_mark_store_table}
 UNION ALL
SELECT 'read-model:' || topic
  FROM ${read_model_capture_positions_table}
 ORDER BY 1
