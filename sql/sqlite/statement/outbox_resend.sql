-- Lets messages that were published go out again, under the same event id.
-- What still waits, is in hand or is parked stays as it is.
-- ?1 routes  ?2 their event ids, one by one  ?3 now
UPDATE ${outbox_table}
   SET status = 'pending', attempts = 0, available_at = ?3,
       published_at = NULL, processing_at = NULL, last_error = NULL
 WHERE (event_id, outbox_route) IN
       (SELECT ids.value, routes.value
          FROM json_each(?2) AS ids
          JOIN json_each(?1) AS routes ON routes.key = ids.key)
   AND status = 'published'
