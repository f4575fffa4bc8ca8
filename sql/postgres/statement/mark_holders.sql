-- Transactions with an id below the horizon that have drawn a position and are
-- still open: nextval locks the sequence until its transaction has ended, and
-- the lock goes only after a commit is visible. A holder whose id cannot be
-- seen counts. Ids stand in pg_locks without their epoch.
-- not for: sqlite mysql
-- ?1 topic  ?2 horizon
-- Gives: pid or NULL, name of a prepared transaction or NULL, user,
-- application, seconds since the transaction began.
WITH locks AS MATERIALIZED (
    SELECT * FROM pg_catalog.pg_locks
), next AS (
    SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS id
), holders AS (
    SELECT h.pid,
           (SELECT min(x.transactionid::text::bigint
                       + next.id - next.id % 4294967296
                       + CASE WHEN x.transactionid::text::bigint
                                   - next.id % 4294967296 > 2147483648
                              THEN -4294967296
                              WHEN next.id % 4294967296
                                   - x.transactionid::text::bigint > 2147483648
                              THEN 4294967296
                              ELSE 0 END)
              FROM locks AS x
             WHERE x.locktype = 'transactionid' AND x.granted
               AND x.mode = 'ExclusiveLock'
               AND x.virtualtransaction = h.virtualtransaction
               AND x.pid IS NOT DISTINCT FROM h.pid) AS id
      FROM locks AS h, next
     WHERE h.locktype = 'relation' AND h.granted
       AND h.mode <> 'AccessShareLock'
       AND h.database = (SELECT oid FROM pg_catalog.pg_database
                          WHERE datname = current_database())
       AND h.relation = CASE ?1::text
                        WHEN 'event-store' THEN
                            '${event_store_global_position_table}'::regclass
                        WHEN 'event-capture' THEN
                            '${event_capture_global_position_table}'::regclass
                        WHEN 'read-model-topics' THEN
                            '${read_model_capture_positions_table}'::regclass
                        END
       AND h.pid IS DISTINCT FROM pg_backend_pid()
)
SELECT h.pid, p.gid::text, coalesce(a.usename, p.owner)::text,
       a.application_name::text,
       extract(epoch FROM clock_timestamp()
                          - coalesce(a.xact_start, p.prepared))::bigint
  FROM holders AS h
  LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = h.pid
  LEFT JOIN pg_catalog.pg_prepared_xacts AS p
    ON h.pid IS NULL
   AND p.transaction::text::bigint = h.id % 4294967296
 WHERE h.id IS NULL OR h.id < ?2::bigint
 ORDER BY coalesce(a.xact_start, p.prepared)
