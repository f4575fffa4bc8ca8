-- Sagas for an operator.
-- ?1 saga type  ?2 saga id  ?3 whether it is active (each NULL: any)  ?4 limit
-- Gives: id, saga type, saga id, version, completed_at.
SELECT id, saga_type, saga_id, version, completed_at
  FROM ${saga_instances_table}
 WHERE (?1 IS NULL OR saga_type = ?1)
   AND (?2 IS NULL OR saga_id = ?2)
   AND (?3 IS NULL OR (completed_at IS NULL) = ?3)
 ORDER BY saga_type, saga_id
 LIMIT ?4
