-- Counts the attempt of a process that ended in a deadline's handler, unless it
-- is counted already; one that was counted before it was made gets its reason.
-- ?1 id  ?2 attempts with it  ?3 status  ?4 when it is tried again
-- ?5 the reason  ?6 the reason of an attempt that nothing was heard of
UPDATE ${saga_deadlines_table}
   SET attempts = ?2::integer, status = ?3::text,
       next_retry_at = ?4::timestamptz, failure_reason = ?5::text
 WHERE id = ?1::text::uuid AND status <> 'DEAD_LETTER'
   AND (attempts < ?2::integer
        OR attempts = ?2::integer AND failure_reason = ?6::text)
