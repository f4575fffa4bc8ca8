-- The last deadline of a saga type that lies dead, and why.
-- ?1 saga type
SELECT saga_id, name, failure_reason
  FROM ${saga_deadlines_table}
 WHERE saga_type = ?1 AND status = 'DEAD_LETTER'
 ORDER BY due_at DESC, id DESC
 LIMIT 1
