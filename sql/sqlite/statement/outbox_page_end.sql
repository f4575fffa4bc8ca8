-- The id at which a stretch of so many parked messages ends; no row when there
-- are not so many.
-- ?1 route, or NULL  ?2 type, or NULL  ?3 id of the row or of the event, or NULL
-- ?4 after id  ?5 up to id  ?6 how many rows more than one
SELECT id
  FROM ${outbox_table} AS o
 WHERE id > ?4 AND id <= ?5 AND status = 'parked'
   AND (?1 IS NULL OR outbox_route = ?1)
   AND (?2 IS NULL OR event_type = ?2)
   AND (?3 IS NULL OR (id = ?3 OR event_id = ?3))
 ORDER BY o.id
 LIMIT 1 OFFSET ?6
