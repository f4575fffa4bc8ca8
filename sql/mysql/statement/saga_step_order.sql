-- An operator tells a saga what to do about what it awaits: its deadline is due
-- now. It gets another id, so that a firing in flight does not take it away.
-- ?1 saga type  ?2 saga id  ?3 name  ?4 id  ?5 order  ?6 now
UPDATE ${saga_deadlines_table}
   SET id = ?4, payload_json = ?5, due_at = ?6,
       next_retry_at = ?6, status = 'PENDING', attempts = 0,
       failure_reason = NULL
 WHERE saga_type = ?1 AND saga_id = ?2 AND name = ?3
