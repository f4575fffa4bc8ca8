-- Lets messages that were published or parked go out again, under the same event
-- id. What still waits or is in hand stays as it is. No claim of before may
-- acknowledge it.
-- ?1 routes  ?2 their event ids, one by one  ?3 now
UPDATE ${outbox_table} AS o
  JOIN JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS these
    ON these.id = o.event_id
  JOIN JSON_TABLE(?1, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           route VARCHAR(255) CHARACTER SET utf8mb4
               COLLATE utf8mb4_nopad_bin PATH '$')) AS routes
    ON routes.place = these.place AND routes.route = o.outbox_route
   SET o.status = 'pending', o.attempts = 0, o.available_at = ?3,
       o.published_at = NULL, o.processing_at = NULL, o.last_error = NULL,
       o.claim_token = NULL, o.claim_expires_at = NULL
 WHERE o.status IN ('published', 'parked')
