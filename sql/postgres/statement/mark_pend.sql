-- Moves the mark as far as it can be, and records the end that was read before
-- mark_own ran. Every position up to that end was drawn by a transaction with a
-- lower id than ours. When none of those is in flight the end is the mark at
-- once; otherwise ours is the horizon to wait for. A horizon that is not below
-- our id is another cluster's.
-- A lease that ends in more than a minute is from before the clock went back.
-- not for: sqlite mysql
-- The lease comes with it.
-- ?1 topic  ?2 the mark that was read  ?3 the end that was read
-- ?4 who moves it, or NULL  ?5 how long others leave it to that one, microseconds
UPDATE ${high_water_mark_store_table} AS m
   SET high_water_mark =
           CASE WHEN s.lowest >= s.own THEN ?3::bigint
                WHEN m.pending_horizon < s.own AND m.pending_horizon <= s.lowest
                THEN greatest(m.high_water_mark, m.pending_end)
                ELSE m.high_water_mark END,
       pending_end = CASE WHEN s.lowest >= s.own THEN NULL ELSE ?3::bigint END,
       pending_horizon = CASE WHEN s.lowest >= s.own THEN NULL ELSE s.own END,
       lease_owner = ?4::text,
       lease_expires_at =
           CASE WHEN ?4::text IS NOT NULL
                THEN clock_timestamp() + ?5::bigint * interval '1 microsecond'
           END
  FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
               pg_current_xact_id()::text::bigint) AS s (lowest, own)
 WHERE m.topic_name = ?1::text
   AND m.high_water_mark = ?2::bigint
   AND (m.lease_owner IS NULL OR m.lease_owner = ?4::text
        OR m.lease_expires_at <= clock_timestamp()
        OR m.lease_expires_at > clock_timestamp() + interval '60 seconds')
   AND (SELECT q.seqcache
          FROM pg_catalog.pg_sequence AS q
         WHERE q.seqrelid =
               CASE m.topic_name
                      WHEN 'event-store' THEN
                          '${event_store_global_position_table}'::regclass
                      WHEN 'event-capture' THEN
                          '${event_capture_global_position_table}'::regclass
                      WHEN 'read-model-topics' THEN
                          '${read_model_capture_positions_table}'::regclass
                      END) = 1
