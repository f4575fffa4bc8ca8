-- The highest id of the parked messages that are meant.
-- ?1 route, or NULL  ?2 type, or NULL  ?3 id of the row or of the event, or NULL
SELECT id
  FROM ${outbox_table} AS o
 WHERE status = 'parked'
   AND (?1 IS NULL OR outbox_route = ?1)
   AND (?2 IS NULL OR event_type = ?2)
   AND (?3 IS NULL OR (id = ?3 OR event_id = ?3))
 ORDER BY o.id DESC
 LIMIT 1
