-- The last position handed out in the capture topic.
SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END
  FROM ${event_capture_global_position_table}
