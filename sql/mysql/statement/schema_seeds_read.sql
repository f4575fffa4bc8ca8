-- How many of the six seed rows are there: version, partition count, two
-- counters, and the marks of the two topics that always exist.
SELECT (SELECT count(*) FROM ${schema_version_table} WHERE id = 1)
     + (SELECT count(*) FROM ${partition_metadata_table} WHERE id = 1)
     + (SELECT count(*) FROM ${event_store_global_position_table} WHERE id = 1)
     + (SELECT count(*) FROM ${event_capture_global_position_table}
         WHERE id = 1)
     + (SELECT count(*) FROM ${high_water_mark_store_table}
         WHERE topic_name IN ('event-store', 'event-capture'))
