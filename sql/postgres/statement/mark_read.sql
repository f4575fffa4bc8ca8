-- A topic's mark and start, and its end: the last position handed out.
-- The end is asked for by a function that locks the sequence's page: while
-- nextval writes its log, up to 32 positions that nobody has drawn stand in
-- last_value for a moment, and a plain read may see them. Before the first
-- draw, which the function gives as NULL, it is the position before the start.
-- ?1 topic  ?2 who asks, or NULL
-- Gives also: whether somebody else is to move the mark.
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
       m.lease_owner IS NOT NULL AND m.lease_owner <> coalesce(?2::text, '')
           AND m.lease_expires_at > clock_timestamp()
           AND m.lease_expires_at <= clock_timestamp() + interval '60 seconds'
  FROM ${high_water_mark_store_table} AS m
 WHERE m.topic_name = ?1::text
