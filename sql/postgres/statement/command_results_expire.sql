-- Deletes the oldest results that are out of date; another one that does the
-- same has its own.
-- ?1 older than  ?2 limit
DELETE FROM ${command_results_table}
 WHERE id IN (SELECT id
                FROM ${command_results_table}
               WHERE created_at < ?1::timestamptz
               ORDER BY created_at
               LIMIT ?2::bigint
                 FOR UPDATE SKIP LOCKED)
