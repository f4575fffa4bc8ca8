-- The steps of some instances.
-- ?1 instance ids
-- Gives: place of the id in the array (from 0) and the row; of a step, the
-- rounds in order.
SELECT wanted.place - 1, s.id, s.step_name, s.round, s.state, s.command_id,
       s.compensation_id, s.sends, s.compensation_sends, s.message_json,
       s.failure_reason, s.deadline_at, s.sent_at, s.answered_at,
       s.compensation_sent_at, s.compensated_at
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS wanted
  JOIN ${saga_steps_table} AS s ON s.instance_id = wanted.id
 ORDER BY wanted.place, s.step_no, s.round
