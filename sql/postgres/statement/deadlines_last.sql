-- The highest id of the deadlines that an operator's verb changes.
-- ?1 id  ?2 saga type  ?3 saga id  ?4 name  ?5 status  ?6 due before (each NULL: any)
-- ?7 the verb: 0 fire, 1 retry, 2 delete  ?8 now
SELECT id::text
  FROM ${saga_deadlines_table} AS d
 WHERE (?1::text IS NULL OR id = ?1::text::uuid)
   AND (?2::text IS NULL OR saga_type = ?2::text)
   AND (?3::text IS NULL OR saga_id = ?3::text)
   AND (?4::text IS NULL OR name = ?4::text)
   AND (?5::text IS NULL OR status = ?5::text)
   AND (?6::timestamptz IS NULL OR due_at < ?6::timestamptz)
   AND CASE ?7::bigint
       WHEN 0 THEN status <> 'DEAD_LETTER'
                   AND (due_at > ?8::timestamptz OR next_retry_at > ?8::timestamptz)
       WHEN 1 THEN status IN ('FAILED', 'DEAD_LETTER')
       ELSE substr(name, 1, 9) <> 'moontide:' END
 ORDER BY d.id DESC
 LIMIT 1
