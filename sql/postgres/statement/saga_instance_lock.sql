-- Locks one saga, which is to be deleted.
-- ?1 saga type  ?2 saga id
-- Gives: id, version, completed_at.
SELECT id, version, completed_at
  FROM ${saga_instances_table}
 WHERE saga_type = ?1::text AND saga_id = ?2::text
   FOR UPDATE
