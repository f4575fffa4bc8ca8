-- What waits, by publisher.
SELECT outbox_route, count(*), min(created_at)
  FROM ${outbox_table}
 WHERE status = 'pending'
 GROUP BY outbox_route
 ORDER BY outbox_route
