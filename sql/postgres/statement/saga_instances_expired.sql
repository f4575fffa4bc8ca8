-- Locks sagas that were completed long ago, the oldest first. One with a step
-- whose answer is still awaited stays; one that somebody else has
-- locked is left for the next time. OFFSET has the steps looked up one by one:
-- before the tables are analyzed the server would rather read all of them.
-- ?1 completed before  ?2 limit
-- Gives: id, saga type, saga id, version.
SELECT s.id, s.saga_type, s.saga_id, s.version
  FROM ${saga_instances_table} AS s
 WHERE s.completed_at < ?1::timestamptz
   AND NOT EXISTS (SELECT 1 FROM ${saga_steps_table} AS p
                    WHERE p.instance_id = s.id
                      AND p.deadline_at IS NOT NULL
                   OFFSET 0)
 ORDER BY s.completed_at
 LIMIT ?2::bigint
   FOR UPDATE OF s SKIP LOCKED
