-- Staged messages by their event ids.
-- ?1 event ids
SELECT o.event_id, o.outbox_route, o.event_type, o.payload, o.ordering_key,
       o.tenant_id, o.execution_id, o.status
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS these
  JOIN ${outbox_table} AS o ON o.event_id = these.id
