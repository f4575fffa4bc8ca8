-- Sessions that are older than the repair of the topic's sequence.
-- not for: sqlite mysql
-- ?1 topic
-- Gives the same as mark_holders.
SELECT a.pid, NULL::text, a.usename::text, a.application_name::text,
       extract(epoch FROM clock_timestamp() - a.backend_start)::bigint
  FROM pg_catalog.pg_stat_activity AS a
 WHERE a.datname = current_database()
   AND a.pid <> pg_backend_pid()
   AND coalesce(a.backend_type, 'client backend') = 'client backend'
   AND (a.backend_start IS NULL
        OR a.backend_start < substring(
               obj_description(
                   CASE ?1::text
                   WHEN 'event-store' THEN
                       '${event_store_global_position_table}'::regclass
                   WHEN 'event-capture' THEN
                       '${event_capture_global_position_table}'::regclass
                   WHEN 'read-model-topics' THEN
                       '${read_model_capture_positions_table}'::regclass
                   END, 'pg_class')
               FROM 'cache restored at (.*)$')::timestamptz)
 ORDER BY a.backend_start
