-- Staged messages by their event ids.
-- ?1 event ids
SELECT event_id, outbox_route, event_type, payload, ordering_key, tenant_id,
       execution_id, status
  FROM ${outbox_table}
 WHERE event_id IN (SELECT value FROM json_each(?1))
