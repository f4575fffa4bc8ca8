-- The deadlines of each saga type: how many there are, have failed, lie dead,
-- should have fired by now, since when, and when the next one is due; and how
-- many of the dead are the host's own.
-- ?1 due before: should have fired
SELECT saga_type, count(*),
       count(CASE WHEN status = 'FAILED' AND attempts > 0 THEN 1 END),
       count(CASE WHEN status = 'DEAD_LETTER' THEN 1 END),
       count(CASE WHEN next_retry_at < ?1 THEN 1 END),
       min(CASE WHEN next_retry_at < ?1 THEN next_retry_at END),
       min(next_retry_at),
       count(CASE WHEN status = 'DEAD_LETTER'
                   AND substr(name, 1, 9) = 'moontide:' THEN 1 END)
  FROM ${saga_deadlines_table}
 GROUP BY saga_type
 ORDER BY saga_type
