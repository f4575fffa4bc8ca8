-- The last position handed out to an event.
SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END
  FROM ${event_store_global_position_table}
