-- A topic's mark and start, and its end: the last position handed out.
-- last_value counts only if is_called.
-- ?1 topic
SELECT m.high_water_mark, m.topic_start,
       CASE m.topic_name
       WHEN 'event-store' THEN
           (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END
              FROM ${event_store_global_position_table})
       WHEN 'event-capture' THEN
           (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END
              FROM ${event_capture_global_position_table})
       END
  FROM ${high_water_mark_store_table} AS m
 WHERE m.topic_name = ?1::text
