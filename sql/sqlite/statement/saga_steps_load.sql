-- The steps of some instances. CROSS keeps the order of the join: each id is
-- looked up.
-- ?1 instance ids
-- Gives: place of the id in the array (from 0) and the row; of a step, the
-- rounds in order.
SELECT wanted.key, s.id, s.step_name, s.round, s.state, s.command_id,
       s.compensation_id, s.sends, s.compensation_sends, s.message_json,
       s.failure_reason, s.deadline_at, s.sent_at, s.answered_at,
       s.compensation_sent_at, s.compensated_at
  FROM json_each(?1) AS wanted
 CROSS JOIN ${saga_steps_table} AS s
 WHERE s.instance_id = wanted.value
 ORDER BY wanted.key, s.step_no, s.round
