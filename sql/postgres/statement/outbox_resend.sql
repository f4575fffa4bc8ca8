-- Lets messages that were published or parked go out again, under the same event
-- id. What still waits or is in hand stays as it is. No claim of before may
-- acknowledge it.
-- ?1 routes  ?2 their event ids, one by one  ?3 now
UPDATE ${outbox_table} AS o
   SET status = 'pending', attempts = 0, available_at = ?3::timestamptz,
       published_at = NULL, processing_at = NULL, last_error = NULL,
       claim_token = NULL, claim_expires_at = NULL
  FROM unnest(?1::text[], ?2::text[]) AS these (route, id)
 WHERE o.event_id = these.id::uuid
   AND o.outbox_route = these.route
   AND o.status IN ('published', 'parked')
