-- How many sagas are meant.
-- ?1 saga type  ?2 saga id  ?3 whether it is active (each NULL: any)
SELECT count(*)
  FROM ${saga_instances_table}
 WHERE (?1 IS NULL OR saga_type = ?1)
   AND (?2 IS NULL OR saga_id = ?2)
   AND (?3 IS NULL OR (completed_at IS NULL) = ?3)
