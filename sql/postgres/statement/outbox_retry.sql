-- An operator has parked messages tried again, from now on with a fresh budget.
-- ?1 route, or NULL  ?2 type, or NULL  ?3 id of the row or of the event, or NULL
-- ?4 now  ?5 after id  ?6 up to id
UPDATE ${outbox_table}
   SET status = 'pending', attempts = 0, available_at = ?4::timestamptz,
       published_at = NULL, processing_at = NULL,
       claim_token = NULL, claim_expires_at = NULL
 WHERE id > ?5::text::uuid AND id <= ?6::text::uuid AND status = 'parked'
   AND (?1::text IS NULL OR outbox_route = ?1::text)
   AND (?2::text IS NULL OR event_type = ?2::text)
   AND (?3::text IS NULL OR (id = ?3::text::uuid OR event_id = ?3::text::uuid))
