-- The highest id of the parked messages that are meant.
-- ?1 route, or NULL  ?2 type, or NULL  ?3 id of the row or of the event, or NULL
SELECT id::text
  FROM ${outbox_table} AS o
 WHERE status = 'parked'
   AND (?1::text IS NULL OR outbox_route = ?1::text)
   AND (?2::text IS NULL OR event_type = ?2::text)
   AND (?3::text IS NULL OR (id = ?3::text::uuid OR event_id = ?3::text::uuid))
 ORDER BY o.id DESC
 LIMIT 1
