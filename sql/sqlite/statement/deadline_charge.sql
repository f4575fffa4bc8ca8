-- Counts the attempt of a process that ended in a deadline's handler, unless it
-- is counted already; one that was counted before it was made gets its reason.
-- ?1 id  ?2 attempts with it  ?3 status  ?4 when it is tried again
-- ?5 the reason  ?6 the reason of an attempt that nothing was heard of
UPDATE ${saga_deadlines_table}
   SET attempts = ?2, status = ?3, next_retry_at = ?4, failure_reason = ?5
 WHERE id = ?1 AND status <> 'DEAD_LETTER'
   AND (attempts < ?2 OR attempts = ?2 AND failure_reason = ?6)
