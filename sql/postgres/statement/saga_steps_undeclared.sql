-- A step that a saga still needs and that is not declared any more: what it
-- awaits, or, while it is under way, what it may have to undo. Only sagas that
-- await something have the deadline of their steps, so those that have ended
-- are not read.
-- ?1 saga type  ?2 declared steps  ?3 those of them that can be undone
-- Gives: saga id, step, state of the first by saga; or nothing.
SELECT s.saga_id, s.step_name, s.state
  FROM ${saga_deadlines_table} AS d
 CROSS JOIN LATERAL (
       SELECT p.*
         FROM ${saga_steps_table} AS p
        WHERE p.instance_id = d.instance_id
       OFFSET 0) AS s
 WHERE d.saga_type = ?1::text AND d.name = 'moontide:step'
   AND CASE WHEN s.state IN ('COMPENSATING', 'STUCK')
            THEN s.step_name <> ALL (?3::text[])
            ELSE s.step_name <> ALL (?2::text[]) END
   AND (s.state IN ('SENT', 'OVERDUE', 'COMPENSATING', 'STUCK')
        OR (s.state IN ('SUCCEEDED', 'TIMED_OUT')
            AND EXISTS (SELECT 1
                          FROM ${saga_instances_table} AS i
                         WHERE i.id = s.instance_id
                           AND i.completed_at IS NULL)))
 ORDER BY s.saga_id, s.step_no, s.round
 LIMIT 1
