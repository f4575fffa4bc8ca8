-- A topic's mark and start, and its end: the committed counter.
-- ?1 topic  ?2 who asks, or NULL
-- Gives also: whether somebody else is to move the mark.
SELECT m.high_water_mark, m.topic_start,
       CASE m.topic_name
       WHEN 'event-store' THEN
           (SELECT val FROM ${event_store_global_position_table} WHERE id = 1)
       WHEN 'event-capture' THEN
           (SELECT val FROM ${event_capture_global_position_table}
             WHERE id = 1)
       END,
       m.lease_owner IS NOT NULL AND m.lease_owner <> coalesce(?2, '')
           AND m.lease_expires_at > UTC_TIMESTAMP(6)
  FROM ${high_water_mark_store_table} AS m
 WHERE m.topic_name = ?1
