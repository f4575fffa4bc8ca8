-- The highest id of the deadlines that an operator's verb changes.
-- ?1 id  ?2 saga type  ?3 saga id  ?4 name  ?5 status  ?6 due before (each NULL: any)
-- ?7 the verb: 0 fire, 1 retry, 2 delete  ?8 now
SELECT id
  FROM ${saga_deadlines_table} AS d
 WHERE (?1 IS NULL OR id = ?1)
   AND (?2 IS NULL OR saga_type = ?2)
   AND (?3 IS NULL OR saga_id = ?3)
   AND (?4 IS NULL OR name = ?4)
   AND (?5 IS NULL OR status = ?5)
   AND (?6 IS NULL OR due_at < ?6)
   AND CASE ?7
       WHEN 0 THEN status <> 'DEAD_LETTER'
                   AND (due_at > ?8 OR next_retry_at > ?8)
       WHEN 1 THEN status IN ('FAILED', 'DEAD_LETTER')
       ELSE substr(name, 1, 9) <> 'moontide:' END
 ORDER BY d.id DESC
 LIMIT 1
