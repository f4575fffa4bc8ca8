-- An operator gives deadlines that failed a fresh budget.
-- ?1 id  ?2 saga type  ?3 saga id  ?4 name  ?5 status  ?6 due before (each NULL: any)
-- ?7 now  ?8 after id  ?9 up to id
UPDATE ${saga_deadlines_table}
   SET status = 'PENDING', attempts = 0, failure_reason = NULL,
       next_retry_at = ?7::timestamptz
 WHERE id > ?8::text::uuid AND id <= ?9::text::uuid
   AND (?1::text IS NULL OR id = ?1::text::uuid)
   AND (?2::text IS NULL OR saga_type = ?2::text)
   AND (?3::text IS NULL OR saga_id = ?3::text)
   AND (?4::text IS NULL OR name = ?4::text)
   AND (?5::text IS NULL OR status = ?5::text)
   AND (?6::timestamptz IS NULL OR due_at < ?6::timestamptz)
   AND status IN ('FAILED', 'DEAD_LETTER')
