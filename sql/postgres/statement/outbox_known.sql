-- Staged messages by their event ids.
-- ?1 event ids
SELECT o.event_id, o.outbox_route, o.event_type, o.payload, o.ordering_key,
       o.tenant_id, o.execution_id, o.status
  FROM unnest(?1::text[]) AS these (id)
  JOIN ${outbox_table} AS o ON o.event_id = these.id::uuid
