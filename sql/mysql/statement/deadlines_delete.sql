-- An operator deletes deadlines; those of the host stay.
-- ?1 id  ?2 saga type  ?3 saga id  ?4 name  ?5 status  ?6 due before (each NULL: any)
-- ?7 after id  ?8 up to id
DELETE FROM ${saga_deadlines_table}
 WHERE id > ?7 AND id <= ?8
   AND (?1 IS NULL OR id = ?1)
   AND (?2 IS NULL OR saga_type = ?2)
   AND (?3 IS NULL OR saga_id = ?3)
   AND (?4 IS NULL OR name = ?4)
   AND (?5 IS NULL OR status = ?5)
   AND (?6 IS NULL OR due_at < ?6)
   AND substr(name, 1, 9) <> 'moontide:'
