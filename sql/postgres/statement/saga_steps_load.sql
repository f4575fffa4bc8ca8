-- The steps of some instances. Each id is looked up, whatever the server takes
-- the table to hold.
-- ?1 instance ids
-- Gives: place of the id in the array (from 0) and the row; of a step, the
-- rounds in order.
SELECT wanted.n - 1, s.id, s.step_name, s.round, s.state, s.command_id,
       s.compensation_id, s.sends, s.compensation_sends, s.message_json,
       s.failure_reason, s.deadline_at, s.sent_at, s.answered_at,
       s.compensation_sent_at, s.compensated_at
  FROM unnest(?1::text[]) WITH ORDINALITY AS wanted (id, n)
 CROSS JOIN LATERAL (
       SELECT i.*
         FROM ${saga_steps_table} AS i
        WHERE i.instance_id = wanted.id::uuid
       OFFSET 0) AS s
 ORDER BY wanted.n, s.step_no, s.round
