-- Lets messages that were published go out again, under the same event id.
-- What still waits, is in hand or is parked stays as it is.
-- ?1 route  ?2 event ids  ?3 now
UPDATE ${outbox_table}
   SET status = 'pending', attempts = 0, available_at = ?3::timestamptz,
       published_at = NULL, processing_at = NULL, last_error = NULL
 WHERE outbox_route = ?1::text
   AND status = 'published'
   AND event_id IN (SELECT id::uuid FROM unnest(?2::text[]) AS these (id))
