-- The last deadline of a saga type that lies dead, or that is tried again after it
-- failed, and why.
-- ?1 saga type  ?2 status
SELECT saga_id, name, failure_reason, attempts, next_retry_at
  FROM ${saga_deadlines_table}
 WHERE saga_type = ?1::text AND status = ?2::text
   AND (status <> 'FAILED' OR attempts > 0)
 ORDER BY due_at DESC, id DESC
 LIMIT 1
