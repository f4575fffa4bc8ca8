-- The id at which a stretch of so many parked messages ends; no row when there
-- are not so many.
-- ?1 route, or NULL  ?2 type, or NULL  ?3 id of the row or of the event, or NULL
-- ?4 after id  ?5 up to id  ?6 how many rows more than one
SELECT id::text
  FROM ${outbox_table} AS o
 WHERE id > ?4::text::uuid AND id <= ?5::text::uuid AND status = 'parked'
   AND (?1::text IS NULL OR outbox_route = ?1::text)
   AND (?2::text IS NULL OR event_type = ?2::text)
   AND (?3::text IS NULL OR (id = ?3::text::uuid OR event_id = ?3::text::uuid))
 ORDER BY o.id
 LIMIT 1 OFFSET ?6::bigint
