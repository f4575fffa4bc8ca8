-- The correlation id that the commands of a saga carry, as long as one of them is
-- in the outbox.
-- ?1 saga type  ?2 saga id
SELECT c.correlation
  FROM (SELECT s.step_no, s.round,
               coalesce(o.correlation_id,
                        JSON_VALUE(o.metadata, '$.correlation_id')) AS correlation
          FROM ${saga_instances_table} i
          JOIN ${saga_steps_table} s ON s.instance_id = i.id
          JOIN ${outbox_table} o ON o.event_id = s.command_id
         WHERE i.saga_type = ?1 AND i.saga_id = ?2) AS c
 WHERE c.correlation IS NOT NULL
 ORDER BY c.step_no, c.round
 LIMIT 1
