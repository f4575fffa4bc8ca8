-- The last position handed out in the capture topic.
SELECT val FROM ${event_capture_global_position_table} WHERE id = 1
