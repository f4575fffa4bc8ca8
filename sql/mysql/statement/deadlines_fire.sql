-- An operator makes deadlines due now that are not yet. A dead letter is retried
-- instead.
-- ?1 id  ?2 saga type  ?3 saga id  ?4 name  ?5 status  ?6 due before (each NULL: any)
-- ?7 now  ?8 after id  ?9 up to id
UPDATE ${saga_deadlines_table}
   SET due_at = ?7, next_retry_at = ?7
 WHERE id > ?8 AND id <= ?9
   AND (?1 IS NULL OR id = ?1)
   AND (?2 IS NULL OR saga_type = ?2)
   AND (?3 IS NULL OR saga_id = ?3)
   AND (?4 IS NULL OR name = ?4)
   AND (?5 IS NULL OR status = ?5)
   AND (?6 IS NULL OR due_at < ?6)
   AND status <> 'DEAD_LETTER'
   AND (due_at > ?7 OR next_retry_at > ?7)
