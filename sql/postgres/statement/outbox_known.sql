-- Staged messages by their event ids.
-- ?1 event ids
SELECT o.event_id::text, o.outbox_route, o.event_type, o.payload, o.ordering_key,
       o.tenant_id::text, o.execution_id::text, o.status
  FROM unnest(?1::text[]) AS these (id)
  JOIN ${outbox_table} AS o ON o.event_id = these.id::uuid
