-- Messages of the outbox in the order of staging.
-- ?1 route, or NULL  ?2 status, or NULL  ?3 type, or NULL
-- ?4 id of the row or of the event, or NULL  ?5 whether payloads are wanted
-- ?6 limit
SELECT id::text, outbox_route, event_id::text, event_type, tenant_id::text, execution_id::text,
       correlation_id::text, causation_id::text, ordering_key, metadata,
       CASE WHEN ?5::boolean THEN payload END, status, attempts, last_error,
       occurred_at, created_at, available_at, published_at
  FROM ${outbox_table} AS o
 WHERE (?1::text IS NULL OR outbox_route = ?1::text)
   AND (?2::text IS NULL OR status = ?2::text)
   AND (?3::text IS NULL OR event_type = ?3::text)
   AND (?4::text IS NULL OR (id = ?4::text::uuid OR event_id = ?4::text::uuid))
 ORDER BY o.id
 LIMIT ?6::bigint
