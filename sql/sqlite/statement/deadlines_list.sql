-- Deadlines for an operator, the next ones first.
-- ?1 id  ?2 saga type  ?3 saga id  ?4 name  ?5 status  ?6 due before (each NULL: any)
-- ?7 limit
SELECT id, instance_id, saga_type, saga_id, name, partition_no, due_at,
       status, attempts, next_retry_at, failure_reason, payload_json,
       metadata_json
  FROM ${saga_deadlines_table}
 WHERE (?1 IS NULL OR id = ?1)
   AND (?2 IS NULL OR saga_type = ?2)
   AND (?3 IS NULL OR saga_id = ?3)
   AND (?4 IS NULL OR name = ?4)
   AND (?5 IS NULL OR status = ?5)
   AND (?6 IS NULL OR due_at < ?6)
 ORDER BY due_at, id
 LIMIT ?7
