-- Steps of sagas that need an operator's eye, and the saga of one of them.
SELECT s.saga_type, s.state, count(*), min(s.saga_id)
  FROM ${saga_steps_table} s
 WHERE s.state IN ('OVERDUE', 'STUCK')
 GROUP BY s.saga_type, s.state
 ORDER BY s.saga_type, s.state
