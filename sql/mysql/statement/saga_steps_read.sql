-- The steps of one saga, in the order of their sending; of a step, the rounds
-- in order.
-- ?1 saga type  ?2 saga id
-- Gives: 0 and the row, as saga_steps_load.
SELECT 0, s.id, s.step_name, s.round, s.state, s.command_id,
       s.compensation_id, s.sends, s.compensation_sends, s.message_json,
       s.failure_reason, s.deadline_at, s.sent_at, s.answered_at,
       s.compensation_sent_at, s.compensated_at
  FROM ${saga_instances_table} i
  JOIN ${saga_steps_table} s ON s.instance_id = i.id
 WHERE i.saga_type = ?1 AND i.saga_id = ?2
 ORDER BY s.step_no, s.round
