-- The highest position in the capture topic.
SELECT max(global_position) FROM ${event_capture_records_table}
