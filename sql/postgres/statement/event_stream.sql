-- Events of one stream in order.
-- ?1 aggregate type  ?2 aggregate id  ?3 from sequence number  ?4 limit
SELECT global_position, id, aggregate_type, aggregate_id, sequence_no,
       event_type, event_revision, payload, metadata, occurred_at,
       partition_key
  FROM ${event_store_table}
 WHERE aggregate_type = ?1::text
   AND aggregate_id = ?2::text
   AND sequence_no >= ?3::bigint
 ORDER BY sequence_no
 LIMIT ?4::bigint
