-- What the detector needs to know of a topic. The end is the last position
-- handed out, read as mark_read.sql says.
-- not for: sqlite mysql
-- ?1 topic  ?2 who asks, or NULL
-- Gives: mark, start, end, pending end, pending horizon, lowest transaction id
-- in flight, one that is above all that ended, CACHE of the sequence, when a
-- wider CACHE was repaired or NULL (mark_sessions tells who is left from before
-- that), the name of the sequence, whether somebody else is to move the mark.
-- It runs for every event of an idle host, so it calls nothing that is slow to
-- begin with: obj_description is planned anew each time.
SELECT m.high_water_mark, m.topic_start,
       CASE m.topic_name
       WHEN 'event-store' THEN
           coalesce(
               pg_sequence_last_value('${event_store_global_position_table}'),
               (SELECT s.last_value - 1
                  FROM ${event_store_global_position_table} AS s
                 WHERE NOT s.is_called
                   AND pg_sequence_last_value(
                           '${event_store_global_position_table}') IS NULL),
               pg_sequence_last_value('${event_store_global_position_table}'))
       WHEN 'event-capture' THEN
           coalesce(
               pg_sequence_last_value('${event_capture_global_position_table}'),
               (SELECT s.last_value - 1
                  FROM ${event_capture_global_position_table} AS s
                 WHERE NOT s.is_called
                   AND pg_sequence_last_value(
                           '${event_capture_global_position_table}') IS NULL),
               pg_sequence_last_value('${event_capture_global_position_table}'))
       WHEN 'read-model-topics' THEN
           coalesce(
               pg_sequence_last_value('${read_model_capture_positions_table}'),
               (SELECT s.last_value - 1
                  FROM ${read_model_capture_positions_table} AS s
                 WHERE NOT s.is_called
                   AND pg_sequence_last_value(
                           '${read_model_capture_positions_table}') IS NULL),
               pg_sequence_last_value('${read_model_capture_positions_table}'))
       END,
       m.pending_end, m.pending_horizon,
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
       (SELECT seqcache FROM pg_catalog.pg_sequence WHERE seqrelid = t.seq),
       t.repaired,
       t.seq::text,
       m.lease_owner IS NOT NULL AND m.lease_owner <> coalesce(?2::text, '')
           AND m.lease_expires_at > clock_timestamp()
           AND m.lease_expires_at <= clock_timestamp() + interval '60 seconds'
  FROM ${high_water_mark_store_table} AS m
 CROSS JOIN LATERAL (
       SELECT s.seq,
              (SELECT substring(d.description FROM 'cache restored at (.*)$')
                 FROM pg_catalog.pg_description AS d
                WHERE d.objoid = s.seq AND d.objsubid = 0
                  AND d.classoid = 'pg_catalog.pg_class'::regclass) AS repaired
         FROM (SELECT CASE m.topic_name
                      WHEN 'event-store' THEN
                          '${event_store_global_position_table}'::regclass
                      WHEN 'event-capture' THEN
                          '${event_capture_global_position_table}'::regclass
                      WHEN 'read-model-topics' THEN
                          '${read_model_capture_positions_table}'::regclass
                      END
              ) AS s (seq)) AS t
 WHERE m.topic_name = ?1::text
