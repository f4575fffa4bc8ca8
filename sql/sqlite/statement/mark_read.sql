-- A topic's mark and start, and its end: the committed counter. One of read
-- models has no mark: it is read to the end. 'read-model-topics' stands for all
-- of them: it moves when any of them does.
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
           AND m.lease_expires_at > strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
           AND m.lease_expires_at <= strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', '60 seconds')
  FROM ${high_water_mark_store_table} AS m
 WHERE m.topic_name = ?1
 UNION ALL
SELECT r.val, 0, r.val, 0
  FROM (SELECT coalesce(max(val), 0) AS val
          FROM ${read_model_capture_positions_table}
         WHERE topic = substr(?1, 12)) AS r
 WHERE substr(?1, 1, 11) = 'read-model:'
 UNION ALL
SELECT r.val, 0, r.val, 0
  FROM (SELECT coalesce(sum(val), 0) AS val
          FROM ${read_model_capture_positions_table}) AS r
 WHERE ?1 = 'read-model-topics'
