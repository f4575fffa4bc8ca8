-- Lets messages that were published or parked go out again, under the same event
-- id. What still waits or is in hand stays as it is. No claim of before may
-- acknowledge it. One by one: before the table is analyzed the server would
-- rather read all of a route.
-- ?1 routes  ?2 their event ids, one by one  ?3 now
UPDATE ${outbox_table} AS o
   SET status = 'pending', attempts = 0, available_at = ?3::timestamptz,
       published_at = NULL, processing_at = NULL, last_error = NULL,
       claim_token = NULL, claim_expires_at = NULL
 WHERE o.id = ANY (ARRAY(
       SELECT found.id
         FROM unnest(?1::text[], ?2::text[]) AS these (route, id)
        CROSS JOIN LATERAL (
              SELECT i.id, i.outbox_route
                FROM ${outbox_table} AS i
               WHERE i.event_id = these.id::uuid
              OFFSET 0) AS found
        WHERE found.outbox_route = these.route))
   AND o.status IN ('published', 'parked')
