-- Locks sagas that were completed long ago, the oldest first. One with a step
-- whose answer is still awaited stays.
-- ?1 completed before  ?2 limit
-- Gives: id, saga type, saga id, version.
SELECT s.id, s.saga_type, s.saga_id, s.version
  FROM ${saga_instances_table} AS s
 WHERE s.completed_at < ?1
   AND NOT EXISTS (SELECT 1 FROM ${saga_steps_table} AS p
                    WHERE p.instance_id = s.id
                      AND p.deadline_at IS NOT NULL)
 ORDER BY s.completed_at
 LIMIT ?2
