-- Deletes the oldest results that are out of date.
-- ?1 older than  ?2 limit
DELETE FROM ${command_results_table}
 WHERE id IN (SELECT id
                FROM ${command_results_table}
               WHERE created_at < ?1
               ORDER BY created_at
               LIMIT ?2)
