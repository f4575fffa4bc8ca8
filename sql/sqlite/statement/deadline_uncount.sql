-- Takes back the count of an attempt that was not made.
-- ?1 id  ?2 attempts with it  ?3 the reason that was recorded with the count
UPDATE ${saga_deadlines_table}
   SET status = CASE WHEN attempts = 1 THEN 'PENDING' ELSE status END,
       failure_reason = CASE WHEN attempts = 1 THEN NULL
                             ELSE failure_reason END,
       attempts = attempts - 1
 WHERE id = ?1 AND attempts = ?2 AND failure_reason = ?3
