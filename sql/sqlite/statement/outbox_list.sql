-- Messages of the outbox in the order of staging.
-- ?1 route, or NULL  ?2 status, or NULL  ?3 type, or NULL
-- ?4 id of the row or of the event, or NULL  ?5 whether payloads are wanted
-- ?6 limit
SELECT id, outbox_route, event_id, event_type, tenant_id, execution_id,
       correlation_id, causation_id, ordering_key, metadata,
       CASE WHEN ?5 THEN payload END, status, attempts, last_error,
       occurred_at, created_at, available_at, published_at
  FROM ${outbox_table}
 WHERE (?1 IS NULL OR outbox_route = ?1)
   AND (?2 IS NULL OR status = ?2)
   AND (?3 IS NULL OR event_type = ?3)
   AND (?4 IS NULL OR (id = ?4 OR event_id = ?4))
 ORDER BY id
 LIMIT ?6
