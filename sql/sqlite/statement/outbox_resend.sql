-- Lets messages that were published or parked go out again, under the same event
-- id. What still waits or is in hand stays as it is. No claim of before may
-- acknowledge it.
-- ?1 routes  ?2 their event ids, one by one  ?3 now
UPDATE ${outbox_table}
   SET status = 'pending', attempts = 0, available_at = ?3,
       published_at = NULL, processing_at = NULL, last_error = NULL,
       claim_token = NULL, claim_expires_at = NULL
 WHERE (event_id, outbox_route) IN
       (SELECT ids.value, routes.value
          FROM json_each(?2) AS ids
          JOIN json_each(?1) AS routes ON routes.key = ids.key)
   AND status IN ('published', 'parked')
