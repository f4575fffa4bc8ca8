-- How many of the six seed rows are there: version, partition count, two
-- counters (sequences, here), and the marks of the two topics that always
-- exist; the mark of read models, which only this dialect has, takes one off
-- when it is missing.
SELECT (SELECT count(*) FROM ${schema_version_table} WHERE id = 1)
     + (SELECT count(*) FROM ${partition_metadata_table} WHERE id = 1)
     + (SELECT count(*) FROM ${event_store_global_position_table})
     + (SELECT count(*) FROM ${event_capture_global_position_table})
     + (SELECT count(*) FROM ${high_water_mark_store_table}
         WHERE topic_name IN ('event-store', 'event-capture'))
     - (SELECT 1 - count(*) FROM ${high_water_mark_store_table}
         WHERE topic_name = 'read-model-topics')
